//! What a claim or an action rests on: a span that is [cited](crate::Lane::cite), in the window or as it was
//! [recalled](crate::Recalled::cite), typed by how far it can be trusted (rules R20, R21).
//!
//! A span of a first-hand lane gives [`Raw`] evidence, where a tool or a person is its origin; a text that was recalled gives
//! [`Verified`], a summary [`SecondHand`], a rationale [`Unbacked`]. A destructive action takes the first two only, and a
//! person's consent only from what a person said.

use std::{fmt, marker::PhantomData};

use serde::Serialize;

use crate::{Digest, Origin, SpanId};

/// A tool's result or a person's statement, in the window as it entered.
#[derive(Debug)]
pub enum Raw {}

/// A first-hand text that was recalled and verified against its SHA-256.
#[derive(Debug)]
pub enum Verified {}

/// A summary: never above its weakest source.
#[derive(Debug)]
pub enum SecondHand {}

/// What pruning or a model wrote of itself.
#[derive(Debug)]
pub enum Unbacked {}

/// How far evidence can be trusted, as a type: [`Raw`], [`Verified`], [`SecondHand`] or [`Unbacked`].
pub trait Cited: seal::Cited + 'static {
    #[doc(hidden)]
    const FIRST_HAND: bool = false;
}

impl Cited for Raw {
    const FIRST_HAND: bool = true;
}

impl Cited for Verified {
    const FIRST_HAND: bool = true;
}

impl Cited for SecondHand {}
impl Cited for Unbacked {}

mod seal {
    #[diagnostic::on_unimplemented(
        message = "`{Self}` is no evidence: how far a span can be trusted is said by keepspan alone",
        label = "remove this impl; evidence is a span that is cited: `lanes.schema.cite(id)?`"
    )]
    pub trait Cited {}
    impl Cited for super::Raw {}
    impl Cited for super::Verified {}
    impl Cited for super::SecondHand {}
    impl Cited for super::Unbacked {}
}

/// How far a span can be trusted, as a value; the lowest first.
// Named unlike the types: a variant of the same name would make the compiler spell out their paths in every message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// The model's own words, a notice, or a summary that rests on such.
    Hearsay,
    /// A summary of first-hand spans.
    Digested,
    /// First-hand, and in the store only: recall verifies it.
    Stored,
    /// First-hand, in the window as it entered.
    Seen,
}

/// A span that is cited; `T` says how far it can be trusted. It names the span and holds no text, and counts only in the
/// window that gave it, for as long as the span is what it was.
pub struct Evidence<T> {
    /// Of the window.
    pub(crate) numbering: u64,
    pub(crate) span: SpanId,
    /// None where it was cited in the window, which it must then still be in.
    pub(crate) verified: Option<Digest>,
    pub(crate) trust: Trust,
    pub(crate) cited: PhantomData<fn() -> T>,
}

impl<T> Evidence<T> {
    /// The span.
    pub fn span(&self) -> SpanId {
        self.span
    }

    /// How far it can be trusted: of a summary, no further than its weakest source.
    pub fn trust(&self) -> Trust {
        self.trust
    }
}

impl<T> fmt::Debug for Evidence<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Evidence").field("span", &self.span).field("trust", &self.trust).finish_non_exhaustive()
    }
}

/// A person's consent, in their own words: made by [`Lane::consent`](crate::Lane::consent) alone, from a span of human origin.
/// Which role the span has is of no account: a notice under the user's role is no statement of the user's. It is spent by
/// the run that it is given to: what a person said once covers one run, unless they agreed to [several
/// requests](Self::for_several).
#[derive(Debug)]
#[must_use = "give it to the permit: `permit.consented_by(consent)?`"]
pub struct Consent {
    /// Of the window.
    pub(crate) numbering: u64,
    pub(crate) span: SpanId,
    pub(crate) several: bool,
}

impl Consent {
    /// Says that the person agreed to more than one request ("book both"): what they said covers each of them once. It is for
    /// the program to see that they did.
    pub fn for_several(self) -> Self {
        Self { several: true, ..self }
    }

    /// What the person said.
    pub fn span(&self) -> SpanId {
        self.span
    }
}

/// Why a span is no evidence for what it was to be evidence for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvidenceError {
    /// No such span, or one of another lane.
    #[error(transparent)]
    Selection(#[from] crate::SelectionError),
    /// Only a pointer, or less, is in the window.
    #[error("{span} is not in the window: restore it, or cite what `Window::recall` gives: `recalled.cite()?`")]
    NotResident {
        /// The span.
        span: SpanId,
    },
    /// Neither a tool nor a person said it.
    #[error("{span} is {}: cite the tool's result or the person's statement that it rests on", said(*origin))]
    NotFirstHand {
        /// The span.
        span: SpanId,
        /// Who said it.
        origin: Origin,
    },
    /// A person's consent was asked for, and nobody's own words are in the span.
    #[error("{span} is {}, and consent comes only from what a person said: ask, and push the answer with `NewSpan::human`", said(*origin))]
    NotHuman {
        /// The span.
        span: SpanId,
        /// Who said it.
        origin: Origin,
    },
    /// A newer observation of the same subject took its place.
    #[error(
        "{span} is stale: {by} is a newer observation of the same subject: cite that one, and look whether the action still fits"
    )]
    Stale {
        /// The span.
        span: SpanId,
        /// The newer one.
        by: SpanId,
    },
    /// An interim result, whose call has no final one yet.
    #[error("{span} is an interim result, and its call has no final one yet: wait for that, and cite it")]
    Unfinished {
        /// The span.
        span: SpanId,
    },
    /// It was cited in another window, or before this one was recovered and its spans got other numbers.
    #[error(
        "{span} was cited in another window, or before this one was recovered: cite it again, in the one that is asked for the permit"
    )]
    OtherWindow {
        /// The span.
        span: SpanId,
    },
    /// The text in the window was never read back from the store.
    #[error(
        "{span} was recalled from the window itself and is not in the store yet: externalize first, or cite it by its lane"
    )]
    Unverified {
        /// The span.
        span: SpanId,
    },
}

fn said(origin: Origin) -> &'static str {
    match origin {
        Origin::Human => "a person's statement",
        Origin::Model => "the model's own text",
        Origin::Tool => "a tool's result",
        Origin::Notice => "a notice of the program",
    }
}
