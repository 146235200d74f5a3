#![cfg_attr(all(feature = "derive", feature = "redb"), doc = include_str!("../../README.md"))]
#![cfg_attr(
    not(all(feature = "derive", feature = "redb")),
    doc = "Typed lanes over an immutable store; see the README."
)]

extern crate self as keepspan;

mod digest;
mod episode;
mod error;
pub mod kind;
mod pointer;
mod record;
pub mod rule;
mod span;
mod state;
pub mod store;
mod tokens;
mod window;

#[cfg(feature = "derive")]
pub use keepspan_macros::ContextState;
#[cfg(feature = "tiktoken")]
pub use tokens::{Cl100k, O200k};

pub use self::{
    digest::Digest,
    episode::{Episode, EpisodeId, PolicyVersion},
    error::{
        CommitError, DiscardError, EvictError, ExternalizeError, OpenError, PushError, RecallError, RegroundError,
        RestoreError, SelectionError, SummarizeError, SummaryTextError, Unexplained,
    },
    pointer::Pointer,
    record::Tombstone,
    span::{Content, NewSpan, NotUtf8, Origin, Role, SpanId},
    state::{ContextState, Field, LaneSpec, Spans},
    tokens::{
        ByteEstimate, Calibrated, Certainty, CounterError, CounterMismatch, Growing, Image, ImageCost, OneByteAToken,
        Settles, TokenCount, TokenCounter, WithImages,
    },
    window::{
        ChangePolicy, Derivation, Discard, Escalation, Evict, Externalize, Fidelity, Finish, Lane, Lanes, Message,
        ModelAnswer, Mutation, Operation, Recall, Recalled, Reground, Restore, Selection, Shown, Step, Summarize,
        SummaryText, Window,
    },
};

/// What the derive's output names; no part of the public interface.
#[doc(hidden)]
pub mod __private {
    pub use core;

    pub use crate::{ContextState, Field, Lane, LaneSpec, Spans, kind, window::Lender};
}
