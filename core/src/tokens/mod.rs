//! Token counts: one counter for trigger, cut, report and render (rule R25).

mod calibrated;
mod estimate;
mod growing;
mod image;
#[cfg(feature = "tiktoken")]
mod openai;

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

#[cfg(feature = "tiktoken")]
pub use self::openai::{Cl100k, O200k};
pub use self::{
    calibrated::{Calibrated, CounterMismatch},
    estimate::ByteEstimate,
    growing::{Growing, Settles},
    image::{Image, ImageCost, WithImages},
};

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

    pub(crate) const fn of(tokens: u32, certainty: Certainty) -> Self {
        Self { tokens, certainty }
    }

    /// The number, in tokens.
    pub const fn tokens(self) -> u32 {
        self.tokens
    }

    /// How far the number can be trusted.
    pub const fn certainty(self) -> Certainty {
        self.certainty
    }

    /// Both together, as certain as the less certain of the two.
    pub(crate) fn plus(self, other: Self) -> Result<Self, CounterError> {
        let tokens = self.tokens.checked_add(other.tokens).ok_or_else(CounterError::too_long)?;
        Ok(Self { tokens, certainty: self.certainty.max(other.certainty) })
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

    fn too_long() -> Self {
        Self::new("longer than 4 GiB: split it into several spans")
    }
}

/// Counts tokens. Each span is counted once, when it enters; pointers are counted with the same counter (rule R25).
///
/// Text, images and other bytes are three questions, so that none is ever counted as another: an image costs what its
/// pixels cost, whatever its file weighs. It is called while a window is locked, so it must not touch one.
///
/// # Errors
/// A [`CounterError`] refuses the push or transition that asked; nothing changes.
pub trait TokenCounter: Send + Sync {
    /// Counts text.
    fn text(&self, text: &str) -> Result<TokenCount, CounterError>;

    /// Counts bytes that are neither text nor a [`NewSpan::image`]. As provided: their length in base64, an
    /// upper bound, since that is how they travel and no byte-level tokenizer makes more than one token of a character.
    /// It is high for what a provider unpacks, such as a PDF: override it where you know better.
    ///
    /// [`NewSpan::image`]: crate::NewSpan::image
    fn bytes(&self, bytes: &[u8]) -> Result<TokenCount, CounterError> {
        length(bytes.len().div_ceil(3).saturating_mul(4)).map(TokenCount::upper_bound)
    }

    /// Counts an image of known size. As provided: [`ImageCost::ANTHROPIC`], as an estimate, since the model is not
    /// known here; [`WithImages`] takes another.
    fn image(&self, image: Image<'_>) -> Result<TokenCount, CounterError> {
        ImageCost::ANTHROPIC.guess(image)
    }
}

/// A counter that is shared, as a [`Calibrated`] one is with the code that calls the model.
impl<C: TokenCounter + ?Sized> TokenCounter for Arc<C> {
    fn text(&self, text: &str) -> Result<TokenCount, CounterError> {
        (**self).text(text)
    }

    fn bytes(&self, bytes: &[u8]) -> Result<TokenCount, CounterError> {
        (**self).bytes(bytes)
    }

    fn image(&self, image: Image<'_>) -> Result<TokenCount, CounterError> {
        (**self).image(image)
    }
}

/// One token a byte of text: an [upper bound](Certainty::UpperBound) for every byte-level tokenizer, since each token
/// covers at least one byte.
#[derive(Clone, Copy, Debug, Default)]
pub struct OneByteAToken;

impl TokenCounter for OneByteAToken {
    fn text(&self, text: &str) -> Result<TokenCount, CounterError> {
        length(text.len()).map(TokenCount::upper_bound)
    }
}

fn length(tokens: usize) -> Result<u32, CounterError> {
    u32::try_from(tokens).map_err(|_| CounterError::too_long())
}
