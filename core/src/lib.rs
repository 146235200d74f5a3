#![cfg_attr(all(feature = "derive", feature = "redb"), doc = include_str!("../../README.md"))]
#![cfg_attr(
    not(all(feature = "derive", feature = "redb")),
    doc = "Typed lanes over an immutable store; see the README."
)]

extern crate self as keepspan;

mod budget;
mod digest;
mod episode;
mod error;
pub mod kind;
mod pointer;
pub mod policy;
mod record;
pub mod rule;
mod span;
mod state;
pub mod store;
mod text;
mod tokens;
mod window;

#[cfg(feature = "derive")]
pub use keepspan_macros::{ContextState, policy};

pub use self::{
    budget::{Budget, BudgetError, Limits},
    digest::Digest,
    episode::{Episode, EpisodeId, PolicyVersion},
    error::{
        CommitError, DiscardError, EvictError, ExternalizeError, OpenError, PushError, RecallError, RegroundError,
        RestoreError, SelectionError, SummarizeError, SummaryTextError, Unexplained,
    },
    pointer::Pointer,
    policy::PolicyError,
    record::Tombstone,
    span::{Content, NewSpan, NotUtf8, Origin, Role, SpanId},
    state::{ContextState, Field, LaneSpec, Spans},
    tokens::{Certainty, CounterError, FourBytesAToken, OneByteAToken, TokenCount, TokenCounter},
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

    pub use crate::{
        Budget, ContextState, Field, Lane, LaneSpec, Limits, Spans, kind,
        policy::{Governed, Permits, Policy, Terms, Unrestricted, acts, build::*},
        window::Lender,
    };

    /// A type that the user may have shadowed.
    pub type Str = &'static str;
    /// [`Field::AT`].
    pub type At = (u16, Str);
}
