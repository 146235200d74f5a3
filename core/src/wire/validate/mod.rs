//! The judge of what a program is about to send: does a request's history keep the rules of its provider?
//!
//! It shares no code with what writes requests, so it can be used to test that. A rule stands here because the provider
//! documents it, or because its servers were seen to refuse what breaks it; each [`Rule`] says which. What was recorded
//! as accepted breaks none. Where hosts of one interface differ, the stricter one counts.
//!
//! ```
//! use keepspan::{
//!     tool::Anthropic,
//!     wire::{self, validate::Rule},
//! };
//!
//! let body = serde_json::json!({
//!     "messages": [
//!         { "role": "user", "content": "What is the largest table?" },
//!         { "role": "assistant", "content": [{ "type": "tool_use", "id": "toolu_1", "name": "tables", "input": {} }] },
//!         { "role": "user", "content": "Never mind." },
//!     ],
//! });
//! let invalid = wire::validate(Anthropic, &body).unwrap_err();
//! assert_eq!(invalid.violations[0].pointer, "/messages/1/content/0");
//! assert_eq!(invalid.violations[0].rule, Rule::Unanswered);
//! ```
//!
//! Only the history is judged: not tools, system prompts, limits of size or the fields beside it. From a body alone
//! nobody can tell
//!
//! - whether a signature, an encrypted item or an id is genuine, unchanged or of this model;
//! - whether something signed is missing that the answer had: a thinking block of an earlier turn, the reasoning item
//!   that a stored item asks for, every signature of a Gemini turn;
//! - what a model takes, as to roles (`system` within Anthropic's messages, a last turn of the model) and media;
//! - what stands elsewhere: behind OpenAI's `previous_response_id`, `conversation` and `item_reference`, or Gemini's
//!   `cachedContent`. A result may then have its call there.
//!
//! Blocks and items of unknown type are passed over, as providers add types, unless [`Strict`] says otherwise.

mod anthropic;
mod calls;
mod gemini;
mod judge;
mod openai_chat;
mod openai_responses;
mod rule;

use serde_json::Value;

use self::judge::Judge;
pub use self::rule::{Invalid, Rule, Violation};

mod sealed {
    /// Keeps the set of formats closed.
    pub trait Sealed {}
}

/// A format to judge by: [`OpenAiChat`](crate::tool::OpenAiChat), [`OpenAiResponses`](crate::tool::OpenAiResponses),
/// [`Anthropic`](crate::tool::Anthropic) or [`Gemini`](crate::tool::Gemini), or one of them in [`Strict`].
pub trait Format: sealed::Sealed + Copy {
    #[doc(hidden)]
    const NAME: &'static str;
    /// The history, as a JSON pointer into a body.
    #[doc(hidden)]
    const LIST: &'static str;
    #[doc(hidden)]
    const STRICT: bool = false;
    /// Whether the history may be one text.
    #[doc(hidden)]
    const TEXT: bool = false;

    #[doc(hidden)]
    fn judge(judge: &mut Judge, body: &Value, history: &[Value]);
}

/// The format within, with blocks and items of unknown type as violations too ([`Rule::Unknown`]).
#[derive(Clone, Copy, Debug)]
pub struct Strict<F>(pub F);

impl<F: Format> sealed::Sealed for Strict<F> {}
impl<F: Format> Format for Strict<F> {
    const NAME: &'static str = F::NAME;
    const LIST: &'static str = F::LIST;
    const STRICT: bool = true;
    const TEXT: bool = F::TEXT;

    fn judge(judge: &mut Judge, body: &Value, history: &[Value]) {
        F::judge(judge, body, history);
    }
}

/// Judges a whole request body, or its history alone: the list that is its `messages`, `input` or `contents`. What depends
/// on other fields of the body is judged only where they are given. Linear in the size of the history, not recursive, and
/// made for any JSON.
///
/// # Errors
///
/// Every violation, in the order of their places.
pub fn validate<F: Format>(_format: F, body: &Value) -> Result<(), Invalid> {
    let (list, history) = match body {
        Value::Array(history) => ("", history.as_slice()),
        _ => match body.pointer(F::LIST) {
            Some(Value::Array(history)) => (F::LIST, history.as_slice()),
            Some(Value::String(_)) if F::TEXT => return Ok(()),
            _ => return Judge::new::<F>("").refusing(Rule::NoHistory),
        },
    };
    let mut judge = Judge::new::<F>(list);
    if history.is_empty() {
        return judge.refusing(Rule::EmptyHistory);
    }
    F::judge(&mut judge, body, history);
    judge.done()
}
