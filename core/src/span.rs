//! What enters a window: a span's content, where it came from, and the id the library mints for it.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{
    CounterError, Image, TokenCount, TokenCounter,
    wire::{Media, Wire},
};

/// The id of a span, minted by the window when the span enters, in order, and never reused once a commit has the span, or
/// knows of it. Shown as `s17`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SpanId(u64);

impl SpanId {
    pub(crate) const fn mint(number: u64) -> Self {
        Self(number)
    }

    pub(crate) const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The number in the id: 1 for the first span of an episode.
    pub const fn number(self) -> u64 {
        self.0
    }

    /// Reads an id as a model or a person writes it (`s17`, `S17`). The id need not exist: the operation that takes it
    /// says so.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.trim().strip_prefix(['s', 'S'])?;
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        digits.parse().ok().filter(|number| *number > 0).map(Self)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s{}", self.0)
    }
}

/// A span's text or bytes, shared, never copied after it entered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Content {
    /// UTF-8 text.
    Text(Arc<str>),
    /// Anything else: an image, a file.
    Bytes(Arc<[u8]>),
}

impl Content {
    /// Text from bytes that should be UTF-8.
    ///
    /// # Errors
    /// [`NotUtf8`] says where the text stops being UTF-8; keep such content as [`Content::Bytes`].
    pub fn from_utf8(bytes: &[u8]) -> Result<Self, NotUtf8> {
        std::str::from_utf8(bytes).map(Self::from).map_err(|error| NotUtf8 { valid_up_to: error.valid_up_to() })
    }

    /// The bytes as stored and hashed.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }

    /// The text, when it is text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Bytes(_) => None,
        }
    }

    pub(crate) fn is_text(&self) -> bool {
        matches!(self, Self::Text(_))
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<Arc<str>> for Content {
    fn from(text: Arc<str>) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes.into())
    }
}

/// JSON as its text.
impl From<serde_json::Value> for Content {
    fn from(value: serde_json::Value) -> Self {
        value.to_string().into()
    }
}

/// What an action can give: text, bytes or JSON.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no outcome that can be kept: an action gives text, bytes or JSON",
    label = "give a `String`, a `Vec<u8>` or a `serde_json::Value`; `\"done\"`, where there is nothing to say"
)]
pub trait IntoContent {
    /// The content.
    fn into_content(self) -> Content;
}

#[diagnostic::do_not_recommend]
impl<T: Into<Content>> IntoContent for T {
    fn into_content(self) -> Content {
        self.into()
    }
}

/// Bytes offered as text are not UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not UTF-8 from byte {valid_up_to} on: keep it as `Content::Bytes`, or decode it first")]
pub struct NotUtf8 {
    valid_up_to: usize,
}

impl NotUtf8 {
    /// The number of leading bytes that are UTF-8.
    pub const fn valid_up_to(&self) -> usize {
        self.valid_up_to
    }
}

/// Who said it. Trust follows the origin, not the role: a system notice carried in a user-role message is no statement
/// of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A person.
    Human,
    /// The model.
    Model,
    /// A tool's result.
    Tool,
    /// The program around the model: system text, notifications, and what the library itself writes.
    Notice,
}

/// The place a span takes in the message list that is sent to a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// `system` (OpenAI also says `developer`).
    System,
    /// `user`.
    User,
    /// `assistant`.
    Assistant,
    /// `tool`: the result of a call.
    Tool,
}

impl Role {
    /// The name a `roles(..)` route uses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// A span about to enter: content with its origin, role and, for a tool's result, the tool's name.
///
/// A plain `&str` or `String` becomes a [notice](Origin::Notice).
#[derive(Clone, Debug)]
#[must_use = "a span enters the window when it is pushed"]
pub struct NewSpan {
    pub(crate) content: Content,
    pub(crate) origin: Origin,
    pub(crate) role: Role,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) failed: bool,
    part: Part,
    /// The label of the turn that it is a part of.
    turn: Option<Arc<str>>,
    sealed: bool,
    pub(crate) reads: Option<Arc<str>>,
    /// Width and height of an image, in pixels.
    size: Option<(u32, u32)>,
    /// How it stood in the request that it was imported from.
    pub(crate) wire: Option<Wire>,
    /// The images and files within its JSON.
    media: Option<Box<Media>>,
}

/// The part a span takes in an exchange: a model's turn, all its calls and all their results (rule R16).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Part {
    #[default]
    None,
    /// It makes these calls.
    Calls(Vec<Arc<str>>),
    /// It is the result of this call.
    Answers(Arc<str>),
    /// It is a result of this call, and not its last.
    Interim(Arc<str>),
    /// It stands for the result that this call of the span will not have.
    Lost(SpanId, Arc<str>),
    /// It is the result of a call that never was in the window.
    Orphan(Arc<str>),
    /// It is one of several spans of a turn, or sealed. Out of line: it is rare, and every span has a part.
    Turn(Box<Turn>),
}

/// A part of a model's turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Turn {
    /// The program's label, the same for all spans of the turn.
    pub(crate) label: Option<Arc<str>>,
    pub(crate) calls: Vec<Arc<str>>,
    /// Of a sealed span, whether nothing before it has changed since it entered.
    pub(crate) seal: Option<bool>,
}

impl Part {
    /// Whether other spans can leave with it.
    pub(crate) fn is_of_exchange(&self) -> bool {
        !matches!(self, Self::None | Self::Orphan(_))
    }

    /// The calls that it makes.
    pub(crate) fn calls(&self) -> &[Arc<str>] {
        match self {
            Self::Calls(calls) => calls,
            Self::Turn(turn) => &turn.calls,
            _ => &[],
        }
    }

    /// Of a sealed span, whether its seal was intact when this was written.
    pub(crate) fn seal(&self) -> Option<bool> {
        if let Self::Turn(turn) = self { turn.seal } else { None }
    }
}

impl NewSpan {
    fn new(content: impl Into<Content>, origin: Origin, role: Role) -> Self {
        Self {
            content: content.into(),
            origin,
            role,
            name: None,
            failed: false,
            part: Part::None,
            turn: None,
            sealed: false,
            reads: None,
            size: None,
            wire: None,
            media: None,
        }
    }

    /// A span that entered before, to be pushed once more.
    pub(crate) fn again(
        content: Content,
        origin: Origin,
        role: Role,
        name: Option<Arc<str>>,
        part: Part,
        reads: Option<Arc<str>>,
    ) -> Self {
        Self { name, part, reads, ..Self::new(content, origin, role) }
    }

    /// What a person said. Role: user.
    pub fn human(content: impl Into<Content>) -> Self {
        Self::new(content, Origin::Human, Role::User)
    }

    /// What the model said. Role: assistant.
    pub fn model(content: impl Into<Content>) -> Self {
        Self::new(content, Origin::Model, Role::Assistant)
    }

    /// What the tool `name` returned. Role: tool.
    pub fn tool(name: impl Into<Arc<str>>, content: impl Into<Content>) -> Self {
        Self { name: Some(name.into()), ..Self::new(content, Origin::Tool, Role::Tool) }
    }

    /// What the program around the model says. Role: system, so that a lane with `roles("system")` takes it, unless
    /// [`role`](Self::role) says otherwise.
    pub fn notice(content: impl Into<Content>) -> Self {
        Self::new(content, Origin::Notice, Role::System)
    }

    /// An image that a person gave, `width` by `height` pixels as it is sent. Role: user. The counter is asked what such an
    /// [image](crate::TokenCounter::image) costs, once, when it enters; its bytes are never counted as text.
    pub fn image(bytes: impl Into<Arc<[u8]>>, width: u32, height: u32) -> Self {
        Self::new(Content::Bytes(bytes.into()), Origin::Human, Role::User).sized(width, height)
    }

    /// Says that the bytes are an image of `width` by `height` pixels, as a tool's screenshot is. Of no effect on text.
    pub fn sized(self, width: u32, height: u32) -> Self {
        Self { size: Some((width, height)), ..self }
    }

    /// Puts the span under another role without changing who said it.
    pub fn role(self, role: Role) -> Self {
        Self { role, ..self }
    }

    /// Marks a tool's result as an error, for the `on_error` route.
    pub fn failed(self) -> Self {
        Self { failed: true, ..self }
    }

    /// What this is an observation of: `"src/lib.rs:1-80"` of a read, with its range, or `"the schema of users"` of whatever
    /// told it. A later observation of the same subject in the same lane supersedes this one, which a fallback can then take
    /// first; where this one is not in the window then, the two are a
    /// [contradiction](crate::Window::contradictions) if they differ. What the model says of a subject is no observation of it.
    pub fn reads(self, subject: impl Into<Arc<str>>) -> Self {
        Self { reads: Some(subject.into()), ..self }
    }

    /// The provider's ids of the calls that this turn makes. Until each has its result, the exchange is pending and no
    /// part of it leaves; after that it leaves as a whole (rule R16). It is as protected as its most protected
    /// part: no model is offered a large read beside a result that went to a `#[precondition]` lane.
    ///
    /// The calls take tokens as well, so the turn's content is its text with them, or they alone:
    ///
    /// ```
    /// # use keepspan::NewSpan;
    /// let turn = serde_json::json!({ "content": null, "tool_calls": [{ "id": "c1", "type": "function",
    ///     "function": { "name": "read", "arguments": "{\"path\":\"src/lib.rs\"}" } }] });
    /// NewSpan::model(turn.to_string()).calls(["c1"]);
    /// NewSpan::tool("read", "pub mod gate;").answers("c1");
    /// ```
    pub fn calls<I: Into<Arc<str>>>(self, ids: impl IntoIterator<Item = I>) -> Self {
        let calls: Vec<_> = ids.into_iter().map(Into::into).collect();
        Self { part: if calls.is_empty() { Part::None } else { Part::Calls(calls) }, ..self }
    }

    /// The provider's id of the call that this is the result of: the newest call of that id which has none yet, since
    /// providers use ids again. Of calls that were all [abandoned](crate::Window::abandon), the newest: a late result is one
    /// more of its exchange.
    pub fn answers(self, call: impl Into<Arc<str>>) -> Self {
        Self { part: Part::Answers(call.into()), ..self }
    }

    /// As [`answers`](Self::answers), for a result that is not the last: "still running". The call stays open, and its
    /// exchange pending, until a final one comes, [failed](Self::failed) or not.
    pub fn interim(self, call: impl Into<Arc<str>>) -> Self {
        Self { part: Part::Interim(call.into()), ..self }
    }

    /// The result of a call that never was in the window, as an import can have it: marked, rendered where it stands, listed
    /// by [`Window::orphans`](crate::Window::orphans), and no part of any exchange, also when such a call comes later.
    pub fn orphan(self, call: impl Into<Arc<str>>) -> Self {
        Self { part: Part::Orphan(call.into()), ..self }
    }

    /// A part of the model's turn that the program calls `label`, for example by the provider's id of the message: its
    /// reasoning, text and calls, pushed each directly after the other under one label, are one unit with the results of those
    /// calls. It ends with the first span that is anything else, so a label can be used again.
    pub fn turn(self, label: impl Into<Arc<str>>) -> Self {
        Self { turn: Some(label.into()), ..self }
    }

    /// Says that the provider signed these bytes, as reasoning is: they leave whole, and no span that leaves with them is
    /// summarized, discarded or redacted without the others. The signature covers what stood before as well; whether that is
    /// still so, [`Message::seal_intact`](crate::Message::seal_intact) says.
    pub fn sealed(self) -> Self {
        Self { sealed: true, ..self }
    }

    /// How it stood in a request.
    pub(crate) fn framed(self, wire: Wire, media: Option<Media>) -> Self {
        Self { wire: Some(wire), media: media.map(Box::new), ..self }
    }

    /// The part it takes; `None` where it is to be a part of a turn, or sealed, and the model did not say it.
    pub(crate) fn placed(&mut self) -> Option<Part> {
        let (part, label) = (std::mem::take(&mut self.part), self.turn.take());
        if label.is_none() && !self.sealed {
            return Some(part);
        }
        let calls = match part {
            Part::None => Vec::new(),
            Part::Calls(calls) => calls,
            _ => return None,
        };
        let turn = Turn { label, calls, seal: self.sealed.then_some(true) };
        (self.origin == Origin::Model).then(|| Part::Turn(Box::new(turn)))
    }

    /// What the content costs, by what it is.
    pub(crate) fn count(&self, counter: &dyn TokenCounter) -> Result<TokenCount, CounterError> {
        if let Some(media) = &self.media {
            return media.count(counter);
        }
        match (&self.content, self.size) {
            (Content::Text(text), _) => counter.text(text),
            (Content::Bytes(bytes), None) => counter.bytes(bytes),
            (Content::Bytes(bytes), Some((width, height))) => counter.image(Image::new(bytes, width, height)?),
        }
    }
}

impl From<&str> for NewSpan {
    fn from(text: &str) -> Self {
        Self::notice(text)
    }
}

impl From<String> for NewSpan {
    fn from(text: String) -> Self {
        Self::notice(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_parse_as_written() {
        assert_eq!(SpanId::parse(" S17 "), Some(SpanId::mint(17)));
        for bad in ["", "s", "17", "s0", "s-1", "s+1", "s1x", "s99999999999999999999"] {
            assert_eq!(SpanId::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn utf8_is_checked() {
        assert_eq!(Content::from_utf8(b"ab\xff").map_err(|e| e.valid_up_to()), Err(2));
        assert_eq!(Content::from_utf8(b"ab"), Ok(Content::from("ab")));
    }
}
