//! The tools a model prunes and recalls with, as five providers want them, and what it answered (rule R15).
//!
//! A definition offers names in one array of one string enum: span ids ([`Dynamic`]) or lane names ([`Static`]). An
//! [`Answer`] is what came back, in one shape for every provider. Nothing here knows a window: whether a name may leave
//! is asked again where an answer is applied, whatever the schema promised.
//!
//! [`RecallCall`] is the tool beside them that an agent offers in every request: the way back from a pointer (rule R8).
//!
//! ```
//! use keepspan::tool::{Answer, OpenAiChat};
//!
//! let response = serde_json::json!({
//!     "choices": [{
//!         "finish_reason": "tool_calls",
//!         "message": {
//!             "content": "The old diffs are done with.",
//!             "tool_calls": [{
//!                 "id": "call_1",
//!                 "type": "function",
//!                 "function": { "name": "prune_context", "arguments": "{\"spans\":[\"s4\",\"s7\"]}" },
//!             }],
//!         },
//!     }],
//!     "usage": { "completion_tokens": 31 },
//! });
//! let answer = Answer::read(OpenAiChat, &response)?;
//! assert_eq!(answer.calls()[0].names(), ["s4", "s7"]);
//! assert_eq!(answer.output_tokens(), Some(31));
//! # Ok::<(), keepspan::tool::AnswerError>(())
//! ```

mod answer;
mod anthropic;
mod arguments;
mod body;
mod check;
mod definition;
mod error;
mod gemini;
mod limits;
mod mcp;
mod openai;
mod provider;
mod recall;
#[cfg(test)]
mod tests;
mod turn;

pub(crate) use self::{
    answer::Request,
    definition::Tool,
    recall::{Asked, Wanted},
};
pub use self::{
    answer::{Answer, Call},
    anthropic::Anthropic,
    check::check,
    definition::{Dynamic, Form, MAX_OFFERED, PRUNE, SUMMARIZE, Static},
    error::{AnswerError, LimitError},
    gemini::Gemini,
    mcp::Mcp,
    openai::{OpenAiChat, OpenAiResponses},
    provider::Provider,
    recall::{RECALL, RecallCall, RecallCallError},
};

mod sealed {
    /// Keeps the sets of providers and forms closed.
    pub trait Sealed {}
}
