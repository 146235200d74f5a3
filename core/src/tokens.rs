//! Token counts: one counter for trigger, cut, report and render (rule R25).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Content;

/// How far a token count can be trusted (rule R25).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// The model's own tokenizer would give this number.
    Exact,
    /// The true count is at most this number.
    UpperBound,
    /// The true count may be above or below.
    Estimate,
}

/// A number of tokens, with how far it can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TokenCount {
    tokens: u32,
    certainty: Certainty,
}

impl TokenCount {
    /// A count that the model's own tokenizer gave.
    pub const fn exact(tokens: u32) -> Self {
        Self { tokens, certainty: Certainty::Exact }
    }

    /// A count that the truth does not exceed.
    pub const fn upper_bound(tokens: u32) -> Self {
        Self { tokens, certainty: Certainty::UpperBound }
    }

    /// A count that may be off in either direction.
    pub const fn estimate(tokens: u32) -> Self {
        Self { tokens, certainty: Certainty::Estimate }
    }

    /// The number, in tokens.
    pub const fn tokens(self) -> u32 {
        self.tokens
    }

    /// How far the number can be trusted.
    pub const fn certainty(self) -> Certainty {
        self.certainty
    }
}

impl fmt::Display for TokenCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.certainty {
            Certainty::Exact => write!(f, "{} tokens", self.tokens),
            Certainty::UpperBound => write!(f, "at most {} tokens", self.tokens),
            Certainty::Estimate => write!(f, "about {} tokens", self.tokens),
        }
    }
}

/// Why a [`TokenCounter`] gave no count; the push that asked is refused and the window is as it was.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct CounterError {
    reason: String,
}

impl CounterError {
    /// A counter's own words for what went wrong.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }
}

/// Counts tokens. Each span is counted once, when it enters; pointers are counted with the same counter (rule R25).
///
/// It is called while a window is locked, so it must not touch one.
pub trait TokenCounter: Send + Sync {
    /// Counts `content`.
    ///
    /// # Errors
    /// A [`CounterError`] refuses the push or transition that asked; nothing changes.
    fn count(&self, content: &Content) -> Result<TokenCount, CounterError>;
}

/// The default counter: four bytes a token, rounded up. An [estimate](Certainty::Estimate), for when the model's
/// tokenizer is not at hand.
#[derive(Clone, Copy, Debug, Default)]
pub struct FourBytesAToken;

impl TokenCounter for FourBytesAToken {
    fn count(&self, content: &Content) -> Result<TokenCount, CounterError> {
        length(content).map(|bytes| TokenCount::estimate(bytes.div_ceil(4)))
    }
}

/// One token a byte: an [upper bound](Certainty::UpperBound) for every byte-level tokenizer, since each token covers at
/// least one byte.
#[derive(Clone, Copy, Debug, Default)]
pub struct OneByteAToken;

impl TokenCounter for OneByteAToken {
    fn count(&self, content: &Content) -> Result<TokenCount, CounterError> {
        length(content).map(TokenCount::upper_bound)
    }
}

fn length(content: &Content) -> Result<u32, CounterError> {
    u32::try_from(content.as_bytes().len())
        .map_err(|_| CounterError::new("longer than 4 GiB: split it into several spans"))
}
