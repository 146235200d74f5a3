//! Where a definition is sent and an answer comes from.

use serde_json::Value;

use super::{AnswerError, limits::Limits, sealed::Sealed, turn::Turn};
use crate::policy::Act;

/// Where a tool definition is sent and an answer comes from: [`OpenAiChat`](super::OpenAiChat),
/// [`OpenAiResponses`](super::OpenAiResponses), [`Anthropic`](super::Anthropic), [`Gemini`](super::Gemini) or
/// [`Mcp`](super::Mcp).
///
/// A definition goes into the request's `tools` array as it is; Gemini's goes into the `functionDeclarations` of its
/// one tool.
pub trait Provider: Sealed + Act + Copy + 'static {
    /// Its name, as errors give it.
    const NAME: &'static str;
    #[doc(hidden)]
    const LIMITS: &'static Limits;

    #[doc(hidden)]
    fn definition(name: &str, description: &str, schema: Value) -> Value;

    #[doc(hidden)]
    fn turn(response: &Value) -> Result<Turn<'_>, AnswerError>;
}
