//! Why an answer was not taken, and why a definition would not be.

/// Why a model's answer was not taken. Nothing of it is applied: an answer counts as a whole or not at all.
///
/// Calls are numbered from 1 among an answer's own calls of the two tools.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// It does not look like a response of this provider.
    #[error("this is no {provider} response, `{at}` is missing or of another type: pass the whole body, not streamed")]
    NotAResponse {
        /// The provider.
        provider: &'static str,
        /// What was looked for, as a JSON pointer.
        at: &'static str,
    },
    /// The provider answered with an error.
    #[error("{provider} answered with an error: {message}; nothing was decided; mend the request, then ask again")]
    Failed {
        /// The provider.
        provider: &'static str,
        /// What it said, at most 200 characters of it.
        message: String,
    },
    /// The answer stopped at a limit; what it would have gone on to say is unknown.
    #[error(
        "the {provider} answer was cut off (`{reason}`), so none of it is taken: raise the output limit, or offer less"
    )]
    Truncated {
        /// The provider.
        provider: &'static str,
        /// The provider's word for it.
        reason: String,
    },
    /// The model or a filter refused.
    #[error("{provider} refused (`{reason}`): nothing was decided; ask another model, or prune without one")]
    Refused {
        /// The provider.
        provider: &'static str,
        /// The provider's or the model's words for it, at most 200 characters of them.
        reason: String,
    },
    /// It stopped for a reason that does not mean that it was done.
    #[error(
        "the {provider} answer ended with `{reason}`, which is no finished answer: wait for the whole one, or ask again"
    )]
    Unfinished {
        /// The provider.
        provider: &'static str,
        /// The provider's word for it, at most 200 characters of it.
        reason: String,
    },
    /// Neither tool was called; calls of other tools do not count.
    #[error("the answer calls neither `prune_context` nor `summarize_context`: nothing was decided; the window stays")]
    NoCall,
    /// The arguments are no JSON, are cut off, or are nested too deeply.
    #[error("call {call} (`{tool}`): its arguments are no JSON ({source}) and are not repaired: ask again")]
    Json {
        /// The call.
        call: usize,
        /// The tool.
        tool: &'static str,
        /// What the parser said.
        source: serde_json::Error,
    },
    /// A value has another type than the schema says.
    #[error("call {call} (`{tool}`): {at} should be {expected} and is {found}: ask again")]
    Type {
        /// The call.
        call: usize,
        /// The tool.
        tool: &'static str,
        /// Where: `arguments`, or a field with the position in it.
        at: String,
        /// What the schema says.
        expected: &'static str,
        /// What was there.
        found: &'static str,
    },
    /// A required field is missing.
    #[error("call {call} (`{tool}`): {field} is missing: ask again")]
    Missing {
        /// The call.
        call: usize,
        /// The tool.
        tool: &'static str,
        /// The field.
        field: &'static str,
    },
    /// A field the schema does not have, or both `spans` and `lanes`.
    #[error(
        "call {call} (`{tool}`): the schema has no field `{field}` here, and what it asks for is unknown: ask again"
    )]
    UnknownField {
        /// The call.
        call: usize,
        /// The tool.
        tool: &'static str,
        /// The field, at most 200 characters of it.
        field: String,
    },
    /// A field is given twice, so which of the two was meant is unknown.
    #[error("call {call} (`{tool}`): `{field}` is given twice: ask again")]
    RepeatedField {
        /// The call.
        call: usize,
        /// The tool.
        tool: &'static str,
        /// The field.
        field: &'static str,
    },
    /// More names than a definition offers, so some repeat or were made up.
    #[error("call {call} (`{tool}`): more than {most} names, and {most} is the most that is offered: ask again")]
    TooManyNames {
        /// The call.
        call: usize,
        /// The tool.
        tool: &'static str,
        /// [`MAX_OFFERED`](super::MAX_OFFERED).
        most: usize,
    },
    /// The arguments are too large to be names and a summary.
    #[error(
        "call {call} (`{tool}`): its arguments take more than {most} bytes: lower the output limit, then ask again"
    )]
    TooLarge {
        /// The call.
        call: usize,
        /// The tool.
        tool: &'static str,
        /// The limit in bytes.
        most: usize,
    },
}

/// Why a provider would refuse a definition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitError {
    /// It does not look like a definition for this provider.
    #[error("this is no {provider} tool definition, {at} is missing or of another type: give the tool object itself")]
    NotADefinition {
        /// The provider.
        provider: &'static str,
        /// What was looked for.
        at: &'static str,
    },
    /// The name has characters, or a first character, that the provider does not take.
    #[error("{provider} takes no tool named `{name}`: use ASCII letters, digits and `_`, and a letter first")]
    Name {
        /// The provider.
        provider: &'static str,
        /// The name.
        name: String,
    },
    /// Something is too long, too many or too deep.
    #[error("{provider} takes at most {most} {what} in a tool definition and this one has {found}: offer less")]
    Most {
        /// The provider.
        provider: &'static str,
        /// What was counted.
        what: &'static str,
        /// The provider's limit.
        most: usize,
        /// What the definition has.
        found: usize,
    },
    /// Strict mode takes objects with `additionalProperties: false` only.
    #[error("{provider}'s strict mode takes closed objects only: set `additionalProperties` to false at `{at}`")]
    NotClosed {
        /// The provider.
        provider: &'static str,
        /// The object, as a JSON pointer into the schema.
        at: String,
    },
    /// Strict mode does not know the keyword.
    #[error("{provider}'s strict mode refuses the keyword `{keyword}` (at `{at}`): leave it out and check in code")]
    Keyword {
        /// The provider.
        provider: &'static str,
        /// The keyword.
        keyword: &'static str,
        /// The schema it is in, as a JSON pointer.
        at: String,
    },
    /// An enum offers nothing, or the same value twice.
    #[error("the enum at `{at}` is empty or repeats a value: offer no tool when there is nothing to offer")]
    Enum {
        /// The schema it is in, as a JSON pointer.
        at: String,
    },
}

/// The first 200 characters of a provider's or a model's own words.
pub(super) fn clip(text: &str) -> String {
    text.chars().take(200).collect()
}
