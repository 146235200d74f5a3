//! A response body, looked into without trusting it.

use serde_json::Value;

use super::{AnswerError, Provider, error::clip};

/// A provider's words for how an answer ended. A word in none of the lists is no finished answer either.
pub(super) struct Ends {
    /// It was done.
    pub(super) done: &'static [&'static str],
    /// It reached a limit.
    pub(super) cut: &'static [&'static str],
    /// The model or a filter refused.
    pub(super) refused: &'static [&'static str],
}

#[derive(Clone, Copy)]
pub(super) struct Body<'a> {
    provider: &'static str,
    value: &'a Value,
}

impl<'a> Body<'a> {
    /// The body of an answer.
    ///
    /// # Errors
    /// [`AnswerError::Failed`] when it is an error's.
    pub(super) fn of<P: Provider>(value: &'a Value) -> Result<Self, AnswerError> {
        let Some(error) = value.get("error").filter(|error| !error.is_null()) else {
            return Ok(Self { provider: P::NAME, value });
        };
        let message = error.get("message").unwrap_or(error).as_str().unwrap_or("no message");
        Err(AnswerError::Failed { provider: P::NAME, message: clip(message) })
    }

    pub(super) fn find(self, at: &str) -> Option<&'a Value> {
        self.value.pointer(at).filter(|value| !value.is_null())
    }

    pub(super) fn at(self, at: &'static str) -> Result<&'a Value, AnswerError> {
        self.find(at).ok_or_else(|| self.other(at))
    }

    pub(super) fn text(self, at: &'static str) -> Result<&'a str, AnswerError> {
        self.find(at).and_then(Value::as_str).ok_or_else(|| self.other(at))
    }

    pub(super) fn list(self, at: &'static str) -> Result<&'a [Value], AnswerError> {
        self.find(at).and_then(Value::as_array).map(Vec::as_slice).ok_or_else(|| self.other(at))
    }

    /// As [`list`](Self::list); one that is not there is empty.
    pub(super) fn list_or_none(self, at: &'static str) -> Result<&'a [Value], AnswerError> {
        if self.find(at).is_none() { Ok(&[]) } else { self.list(at) }
    }

    pub(super) fn tokens(self, at: &str) -> Option<u64> {
        self.find(at).and_then(Value::as_u64)
    }

    /// Whether `reason` means that the model was done.
    pub(super) fn finished(self, reason: &str, ends: &Ends) -> Result<(), AnswerError> {
        if ends.done.contains(&reason) {
            return Ok(());
        }
        let (provider, said) = (self.provider, clip(reason));
        Err(if ends.cut.contains(&reason) {
            AnswerError::Truncated { provider, reason: said }
        } else if ends.refused.contains(&reason) {
            AnswerError::Refused { provider, reason: said }
        } else {
            AnswerError::Unfinished { provider, reason: said }
        })
    }

    /// Refuses when the model said why it does not answer.
    pub(super) fn not_refused(self, refusal: Option<&Value>) -> Result<(), AnswerError> {
        match refusal.and_then(Value::as_str) {
            Some(words) => Err(AnswerError::Refused { provider: self.provider, reason: clip(words) }),
            None => Ok(()),
        }
    }

    fn other(self, at: &'static str) -> AnswerError {
        AnswerError::NotAResponse { provider: self.provider, at }
    }
}
