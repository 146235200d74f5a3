//! What is one span: a block of a rig message, and back.

use std::{
    borrow::Cow,
    collections::{HashMap, hash_map::Entry},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use keepspan::{Content, Digest, NewSpan, Role};
use rig_core::{
    completion::AssistantContent,
    message::{
        AssistantMessage, CallId, DocumentSourceKind, Image, ImageMediaType, Message, ToolResult, ToolResultContent,
        UserContent,
    },
};
use serde::{Serialize, de::DeserializeOwned};

/// What stands for a result without a text: its call is closed by a span, and a span is never empty.
const EMPTY: &str = "[empty result]";

/// A block of a rig message: what becomes one span.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Piece<'m> {
    System(&'m str),
    User(&'m UserContent),
    Result {
        result: &'m ToolResult,
        part: &'m ToolResultContent,
        /// Whether it is the result's last part: the one that closes the call.
        last: bool,
    },
    Said {
        turn: &'m AssistantMessage,
        block: &'m AssistantContent,
        /// What the blocks of the turn share, where there are several.
        label: Option<usize>,
    },
}

/// What a span holds of a block.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Held<'m> {
    Text(Cow<'m, str>),
    Bytes(Vec<u8>),
}

impl Held<'_> {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }

    fn into_content(self) -> Content {
        match self {
            Self::Text(text) => text.into_owned().into(),
            Self::Bytes(bytes) => bytes.into(),
        }
    }
}

/// The blocks of messages, in the order in which they become spans: results in the order of their calls, before what else
/// the message says. What no request repeats is left out: empty text, and turns that failed.
pub(crate) fn pieces<'m>(messages: impl IntoIterator<Item = &'m Message>) -> Vec<Piece<'m>> {
    let (mut pieces, mut calls) = (Vec::new(), Vec::new());
    for (label, message) in messages.into_iter().enumerate() {
        match message {
            Message::System { content } => pieces.push(Piece::System(content)),
            Message::User { content } => user(content, &calls, &mut pieces),
            Message::Assistant(turn) if turn.stop.as_ref().is_some_and(|stop| stop.is_failure()) => {}
            Message::Assistant(turn) => {
                calls = turn.tool_calls().map(|call| &call.id).collect();
                let label = (turn.content.len() > 1).then_some(label);
                pieces.extend(turn.content.iter().map(|block| Piece::Said { turn, block, label }));
            }
        }
    }
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

fn user<'m>(content: &'m [UserContent], calls: &[&CallId], pieces: &mut Vec<Piece<'m>>) {
    let result = |block: &'m UserContent| match block {
        UserContent::ToolResult(result) => Some(result),
        _ => None,
    };
    let mut results: Vec<_> = content.iter().filter_map(result).collect();
    results.sort_by_key(|result| calls.iter().position(|call| **call == result.call));
    for result in results {
        let last = result.content.len().saturating_sub(1);
        let parts = result.content.iter().enumerate();
        pieces.extend(parts.map(|(at, part)| Piece::Result { result, part, last: at == last }));
    }
    pieces.extend(content.iter().filter(|block| result(block).is_none()).map(Piece::User));
}

impl<'m> Piece<'m> {
    /// The text or bytes that the span has: a text or an image as it is, anything else as JSON.
    pub(crate) fn held(self) -> Held<'m> {
        match self {
            Self::System(text) => Held::Text(text.into()),
            Self::User(block) => match block {
                UserContent::Text(text) => plain::<UserContent>(&text.text, block),
                UserContent::Image(image) => bytes(image).map_or_else(|| json(block), Held::Bytes),
                other => json(other),
            },
            Self::Result { part, .. } => match part {
                ToolResultContent::Text(text) if text.text.is_empty() => Held::Text(EMPTY.into()),
                ToolResultContent::Text(text) => plain::<ToolResultContent>(&text.text, part),
                ToolResultContent::Image(image) => bytes(image).map_or_else(|| json(part), Held::Bytes),
                ToolResultContent::Json { value } => Held::Text(value.to_string().into()),
            },
            Self::Said { block, .. } => match block {
                AssistantContent::Text(text) => plain::<AssistantContent>(&text.text, block),
                // What the provider signed counts; its copy of anything else does not.
                AssistantContent::Reasoning(_) | AssistantContent::Opaque(_) => json(block),
                other => json(&other.canonical()),
            },
        }
    }

    fn is_empty(self) -> bool {
        match self {
            Self::System(text) => text.is_empty(),
            Self::User(block) => matches!(block, UserContent::Text(text) if text.text.is_empty()),
            Self::Said { block, .. } => matches!(block, AssistantContent::Text(text) if text.text.is_empty()),
            Self::Result { .. } => false,
        }
    }

    /// The role and the SHA-256 of its span.
    pub(crate) fn key(self) -> (Role, Digest) {
        let role = match self {
            Self::System(_) => Role::System,
            Self::User(_) => Role::User,
            Self::Result { .. } => Role::Tool,
            Self::Said { .. } => Role::Assistant,
        };
        (role, Digest::of(self.held().as_bytes()))
    }

    /// The span to push.
    pub(crate) fn span(self) -> NewSpan {
        let content = self.held().into_content();
        let size = imagesize::blob_size(content.as_bytes()).ok().filter(|_| content.as_text().is_none());
        let span = match self {
            Self::System(_) => NewSpan::notice(content),
            Self::User(_) => NewSpan::human(content),
            Self::Result { result, last, .. } => {
                let span = NewSpan::tool(result.name.as_str(), content);
                let call = result.call.wire();
                let span = if last { span.answers(&*call) } else { span.interim(&*call) };
                if result.is_error { span.failed() } else { span }
            }
            Self::Said { block, label, .. } => {
                let said = NewSpan::model(content);
                let said = match label {
                    Some(label) => said.turn(format!("turn {label}")),
                    None => said,
                };
                match block {
                    AssistantContent::ToolCall(call) => said.calls([&*call.id.wire()]),
                    AssistantContent::Reasoning(reasoning) if reasoning.native.is_some() => said.sealed(),
                    _ => said,
                }
            }
        };
        match size.and_then(|size| Some((u32::try_from(size.width).ok()?, u32::try_from(size.height).ok()?))) {
            Some((width, height)) => span.sized(width, height),
            None => span,
        }
    }

    /// The block as a message of its own.
    pub(crate) fn message(self) -> Message {
        match self {
            Self::System(text) => Message::system(text),
            Self::User(block) => Message::User { content: vec![block.clone()] },
            Self::Result { result, part, .. } => {
                let (call, name) = (result.call.clone(), result.name.clone());
                Message::tool_results(vec![ToolResult {
                    call,
                    name,
                    content: vec![part.clone()],
                    is_error: result.is_error,
                }])
            }
            Self::Said { turn, block, .. } => Message::Assistant(of_turn(turn, block)),
        }
    }
}

/// A turn that is this block alone.
pub(crate) fn of_turn(turn: &AssistantMessage, block: &AssistantContent) -> AssistantMessage {
    AssistantMessage::new(vec![block.clone()]).with_origin(turn.origin.clone()).with_stop(turn.stop.clone())
}

/// The message of a span of this role that was not said in this process; a result is what its user says, since its call is not
/// in the span.
pub(crate) fn read(role: Role, content: &Content) -> Option<Message> {
    let user = |block| Message::User { content: vec![block] };
    Some(match (role, content.as_text()) {
        (Role::System, text) => Message::system(text?),
        (Role::User, Some(text)) => {
            let block = parsed(text).filter(|block| !matches!(block, UserContent::ToolResult(_)));
            user(block.unwrap_or_else(|| UserContent::text(text)))
        }
        (Role::Tool, Some(text)) => Message::user(text),
        (Role::User | Role::Tool, None) => user(UserContent::Image(image(content.as_bytes())?)),
        (Role::Assistant, text) => {
            let block = parsed(text?).unwrap_or_else(|| AssistantContent::text(text.unwrap_or_default()));
            Message::Assistant(AssistantMessage::new(vec![block]))
        }
    })
}

/// As [`read`], for a part of a tool's result.
pub(crate) fn read_part(content: &Content) -> Option<ToolResultContent> {
    match content.as_text() {
        Some(text) => Some(parsed(text).unwrap_or_else(|| ToolResultContent::text(text))),
        None => image(content.as_bytes()).map(ToolResultContent::Image),
    }
}

fn image(bytes: &[u8]) -> Option<Image> {
    let media_type = match imagesize::image_type(bytes).ok()? {
        imagesize::ImageType::Png => ImageMediaType::PNG,
        imagesize::ImageType::Jpeg => ImageMediaType::JPEG,
        imagesize::ImageType::Gif => ImageMediaType::GIF,
        imagesize::ImageType::Webp => ImageMediaType::WEBP,
        _ => return None,
    };
    let data = DocumentSourceKind::Base64(STANDARD.encode(bytes));
    Some(Image { data, media_type: Some(media_type), ..Image::default() })
}

/// How often each block is among these, of the model's or of anyone else's: what one said is not there because the other
/// repeats it.
pub(crate) fn counted<'m>(pieces: &[Piece<'m>]) -> HashMap<(bool, Held<'m>), usize> {
    let mut counted = HashMap::new();
    for piece in pieces {
        let is_models = matches!(piece, Piece::Said { .. });
        match counted.entry((is_models, piece.held())) {
            Entry::Vacant(free) => drop(free.insert(1_usize)),
            Entry::Occupied(mut taken) => *taken.get_mut() = taken.get().saturating_add(1),
        }
    }
    counted
}

/// A text as it is, unless it would be read back as something else.
fn plain<'m, T: DeserializeOwned>(text: &'m str, block: &(impl Serialize + ?Sized)) -> Held<'m> {
    if parsed::<T>(text).is_some() { json(block) } else { Held::Text(Cow::Borrowed(text)) }
}

fn parsed<T: DeserializeOwned>(text: &str) -> Option<T> {
    text.starts_with("{\"type\":").then(|| serde_json::from_str(text).ok()).flatten()
}

fn json<'m>(block: &(impl Serialize + ?Sized)) -> Held<'m> {
    // A block that is no JSON came from no wire; the window refuses it as an empty span.
    Held::Text(serde_json::to_string(block).unwrap_or_default().into())
}

/// An image's file, where it is in the message itself.
fn bytes(image: &Image) -> Option<Vec<u8>> {
    match &image.data {
        DocumentSourceKind::Base64(data) => STANDARD.decode(data).ok().filter(|bytes| !bytes.is_empty()),
        DocumentSourceKind::Raw(bytes) => Some(bytes.clone()).filter(|bytes| !bytes.is_empty()),
        _ => None,
    }
}
