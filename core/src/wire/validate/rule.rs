//! What can be wrong, and where.

use std::fmt::{self, Display};

/// What a provider would refuse in a history.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("{provider} would refuse this history:{}", Lines(violations))]
pub struct Invalid {
    /// The provider.
    pub provider: &'static str,
    /// Every violation, in the order of their places; never empty.
    pub violations: Vec<Violation>,
}

/// One rule that is broken at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// The place, as a JSON pointer into what was judged.
    pub pointer: String,
    /// The number, from 0, of the message, item or content; none where the history as a whole is meant.
    pub message: Option<usize>,
    /// The number, from 0, of the block, part or call in it; none where the message as a whole is meant.
    pub item: Option<usize>,
    /// The rule.
    pub rule: Rule,
}

impl Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = if self.pointer.is_empty() { "the body" } else { &self.pointer };
        write!(f, "{at}: {}", self.rule)
    }
}

struct Lines<'a>(&'a [Violation]);

impl Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|violation| write!(f, "\n{violation}"))
    }
}

/// A rule of a provider, with its source: *documented* by it, or *seen*, which is what its servers were reported to refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Rule {
    /// A body has a history: `messages`, `input` or `contents`. Documented.
    #[error("there is no history here: pass a request body, or the list of its messages, items or contents")]
    NoHistory,
    /// A history is not empty. Documented.
    #[error("the history is empty: send at least one message")]
    EmptyHistory,
    /// A field has the type that is documented, and an id or a name is not empty. Anthropic's ids have only ASCII letters,
    /// digits, `_` and `-` (seen); an OpenAI reasoning item has its `summary`, be it empty (seen).
    #[error("`{field}` is missing, or is not what the provider takes there: put it as the provider gave it")]
    Field {
        /// The field, from the place on.
        field: &'static str,
    },
    /// A role is one that is documented. OpenAI: system, developer, user, assistant, and tool in Chat, where the deprecated
    /// function is passed over. Anthropic: user, assistant, and system within the conversation. Gemini: user, which is also
    /// meant where there is none, and model; function was seen refused.
    #[error("this role is unknown to the provider: use one of those it documents")]
    Role,
    /// A block, part or call stands in a message of a role that can have it. Documented by each provider's types; seen for
    /// OpenAI, as `input_text` of an assistant or an image of any but a user.
    #[error("a message of this role cannot have this: put it into one of the role that can")]
    WrongRole,
    /// A type is one that the provider documents; only with [`Strict`](super::Strict).
    #[error("this type is unknown here: if the provider has it, judge without `Strict`")]
    Unknown,
    /// A message has content, and a Gemini part has data. Anthropic: all but a last assistant message (seen). OpenAI Chat: an
    /// assistant message may do without beside calls, a refusal or audio (documented). A Gemini text may be empty (recorded).
    #[error("there is no content here: leave the message or the part out, or give it text")]
    NoContent,
    /// Anthropic: a text block is not empty. Seen.
    #[error("this text block is empty: leave it out")]
    EmptyText,
    /// Anthropic: a message of nothing but text has more than white space. Seen.
    #[error("this message is all white space: leave it out, or give it text")]
    BlankText,
    /// Anthropic: the last message, when the model is to go on with it, does not end in white space. Seen.
    #[error("the last assistant message ends in white space: trim its end")]
    TrailingSpace,
    /// Anthropic: the first message is a user's, unless the assistant's first has a `compaction` block, before which nothing
    /// counts (documented). Its own servers were later seen to take an assistant's; others that host its models refuse it.
    #[error("the first message is not the user's: start with a user message")]
    UserFirst,
    /// A call has its result where the provider looks for it. OpenAI Chat: in the `tool` messages right after it (documented,
    /// seen). Responses: later in the input (documented, seen). Anthropic: in the very next message, for a server's tool before
    /// the user speaks again (documented, seen). Gemini: in the next content (documented, seen).
    #[error("this call has no result where the provider looks for one: put the result there, or take the call out too")]
    Unanswered,
    /// A result has its call, where the provider looks for it: the counterpart of [`Unanswered`](Self::Unanswered). Documented,
    /// seen.
    #[error("this result answers no call that waits for one: put it right behind its call, or take it out too")]
    Orphan,
    /// An id names one call, and one call has one result. OpenAI Chat and Gemini: within a turn (seen), so ids may come again
    /// later, as recorded. Responses: while the call waits; an item's own id, once in the input (seen). Anthropic: once in
    /// the whole history (seen).
    #[error("this id was already taken: send each call, result and item once, and rename calls that share an id")]
    Duplicate,
    /// Anthropic: in a user message, results come before anything else. Documented, seen.
    #[error("this result stands behind something else: put all results first in their message")]
    ResultsFirst,
    /// Anthropic: in an assistant turn, no text comes after a call. Seen.
    #[error("this text stands between a call and its result: put it before the turn's calls")]
    CallsLast,
    /// Anthropic, with `thinking` enabled: a turn with calls that still goes on starts with its thinking. Documented, seen.
    #[error(
        "thinking is on, and this turn does not start with its thinking: send it back as it came, or turn thinking off"
    )]
    ThinkingFirst,
    /// Anthropic: an assistant turn does not end in thinking. Seen.
    #[error("this turn ends in thinking: send what followed it, or take the thinking out too")]
    ThinkingLast,
    /// OpenAI Responses: a reasoning item with an id is followed by the item that it led to, which has its id. Documented, seen.
    #[error("the item that this reasoning led to does not follow with its id: send both as they came, or neither")]
    Reasoning,
    /// Gemini: calls come right after a user's content. Seen.
    #[error("these calls do not follow a content of the user: put them behind the user's text, or behind results")]
    CallsAfterUser,
    /// Gemini: in the current turn, the first call of each step has its `thoughtSignature`. Documented for Gemini 3, whose
    /// parallel calls have one signature, on the first. Judged only where another part of the turn's steps has one, as the
    /// body does not name the model.
    #[error("this call has lost its `thoughtSignature`: send the part back as it came")]
    Signature,
}
