//! Render: from a window to the history of a request that the provider takes.

mod shape;
mod writer;

use std::ops::Range;

use serde_json::Value;

pub use self::shape::Shape;
pub(super) use self::shape::{ANTHROPIC, GEMINI, OPENAI_CHAT, OPENAI_RESPONSES};
pub(crate) use self::writer::write;
use crate::SpanId;

/// The history of a request, as JSON.
///
/// What did not change since the render before is the same, byte for byte, so that a provider's cache holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "this is what to send"]
pub struct Rendered {
    body: String,
    list: Range<usize>,
    unsealed: Vec<SpanId>,
}

impl Rendered {
    /// An object with the history, and with the system prompt where that stands beside it: the fields of a request body that
    /// come from the window.
    pub fn body(&self) -> &str {
        &self.body
    }

    /// The same, as a text of one's own.
    pub fn into_body(self) -> String {
        self.body
    }

    /// The history alone: `messages`, `input` or `contents`. In OpenAI's Responses it is a list also where the window was
    /// imported from one text.
    pub fn history(&self) -> &str {
        self.body.get(self.list.clone()).unwrap_or_default()
    }

    /// [`body`](Self::body) as a JSON value, for a client that takes one. Parses it.
    pub fn to_value(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// Spans whose signed reasoning was left out whole, because something before it changed since it was signed and the provider
    /// would refuse it; see [`Message::seal_intact`](crate::Message::seal_intact). The text and calls beside it are there.
    ///
    /// With `thinking` enabled, Anthropic asks for the reasoning of the turn that is under way (the judge's
    /// [`ThinkingFirst`](crate::wire::validate::Rule::ThinkingFirst)): where it is among these, send this one request with thinking
    /// disabled, or prune before a person's turn and not within a loop of calls.
    pub fn unsealed(&self) -> &[SpanId] {
        &self.unsealed
    }
}
