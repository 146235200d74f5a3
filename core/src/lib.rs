#![cfg_attr(all(feature = "derive", feature = "redb"), doc = include_str!("../../README.md"))]
#![cfg_attr(
    not(all(feature = "derive", feature = "redb")),
    doc = "Typed lanes over an immutable store; see the README."
)]

extern crate self as keepspan;

mod accounting;
pub mod action;
pub mod audit;
mod budget;
mod digest;
mod episode;
mod error;
pub mod evidence;
pub mod gate;
mod journal;
pub mod kind;
mod memory;
mod pointer;
pub mod policy;
#[cfg(feature = "derive")]
pub mod presets;
pub mod rule;
#[cfg(feature = "search")]
pub mod search;
mod span;
mod state;
pub mod store;
mod telemetry;
mod text;
mod tokens;
mod tombstone;
pub mod tool;
mod window;
pub mod wire;

#[cfg(feature = "derive")]
pub use keepspan_macros::{Action, Canonical, ContextState, policy};
#[cfg(feature = "tiktoken")]
pub use tokens::{Cl100k, O200k};

pub use self::{
    accounting::{Accounting, Oscillation, PassRecord, Prices, PruneEvent},
    action::{Action, Canonical, Failure, Granted, Override, Permission, Permit, Signature},
    budget::{Budget, BudgetError, Limits},
    digest::Digest,
    episode::{Episode, EpisodeId, PolicyVersion},
    error::{
        AbandonError, CloseError, CommitError, DiscardError, EvictError, ExternalizeError, OpenError, PushError,
        RecallError, RedactError, RegroundError, RestoreError, ResumeError, SelectionError, SummarizeError,
        SummaryTextError, Unexplained,
    },
    evidence::{Consent, Evidence},
    gate::{CachePrice, CachePriceError, Refused},
    journal::{Fault, JournalError},
    memory::{Doubt, Memory, Question, Whereabouts},
    pointer::Pointer,
    policy::PolicyError,
    span::{Content, IntoContent, NewSpan, NotUtf8, Origin, Role, SpanId},
    state::{ContextState, Field, LaneSpec, Spans},
    tokens::{
        ByteEstimate, Calibrated, Certainty, CounterError, CounterMismatch, Growing, Image, ImageCost, OneByteAToken,
        Settles, TokenCount, TokenCounter, WithImages,
    },
    tombstone::Tombstone,
    window::{
        Abandon, Abandonment, Advice, AnswerRecall, Apply, ApplyError, Authority, ChangePolicy, Complete,
        Contradiction, Derivation, Discard, Draft, Escalation, Evict, Externalize, FallBack, FallBackError, Fallback,
        FellBack, Fidelity, Finish, FixedTemplate, Incomplete, Index, Lane, LaneChange, Lanes, LargestToolOutput, Loss,
        Message, Migration, ModelAnswer, Mutation, Offer, OldestFirst, OpenCall, Operation, Outcome, Pass, Preview,
        Proposal, ProposalError, Recall, RecallReply, Recalled, Recovered, Redact, Redacted, Refusal, Reground, Report,
        Restore, ResultState, Selection, Shown, Stale, Step, Summarize, SummaryText, SupersededReads, Uncommitted,
        Undo, Unsaved, Window,
    },
};

/// What the derive's output names; no part of the public interface.
#[doc(hidden)]
pub mod __private {
    pub use core;

    pub use crate::{
        Action, Budget, Canonical, ContextState, Field, Lane, LaneSpec, Limits, Spans,
        action::{Canon, Held, Requirement, consent, effect},
        kind,
        policy::{Governed, Permits, Policy, Terms, Unrestricted, acts, build::*},
        window::Lender,
    };

    /// What [`Action::describe`](crate::Action::describe) gives.
    pub type Described = Option<String>;
    /// A description, whatever text it is.
    pub fn described(text: impl Into<String>) -> Described {
        Some(text.into())
    }
    /// A type that the user may have shadowed.
    pub type Str = &'static str;
    /// [`Field::AT`].
    pub type At = (u16, Str);
    /// What [`Action::check`] gives.
    pub type Checked = Result<(), String>;
}
