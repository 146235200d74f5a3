//! Why a run was stopped. The window is as it was before the step that failed, and whatever entered it is still there.

use keepspan::{AbandonError, CommitError, FallBackError, JournalError, PushError, ResumeError, SpanId};
use rig_core::transcript::TranscriptError;

/// Why a run was stopped; see [`Keepspan::stopped`](crate::Keepspan::stopped). The run itself ends with
/// `PromptError::Cancelled`, whose reason is this error's text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Stop {
    /// A message did not enter the window.
    #[error("a message of the run did not enter the window: {0}")]
    Push(#[from] PushError),
    /// What entered could not be made durable, so nothing may leave and nothing is sent.
    #[error("the window was not committed, and no request is sent before it is: {0}")]
    Commit(#[from] CommitError),
    /// A commit without an answer could not be settled.
    #[error("an earlier commit has no answer, and the store could not be asked for it: {0}; run again once it can")]
    Recover(#[from] ResumeError),
    /// What an earlier process left could not be read.
    #[error("the episode could not be read, to find in it what the run's history repeats: {0}")]
    Journal(#[from] JournalError),
    /// A call of a run that ended before its result could not be closed.
    #[error("a call that has no result could not be closed: {0}")]
    Abandon(#[from] AbandonError),
    /// The window is over its trigger, and no space could be freed: above all, what must stay does not fit (rule R14).
    #[error("the window could not be brought below its limit, and no request over it is sent: {0}")]
    FallBack(#[from] FallBackError),
    /// A request lacks a span that is in the window and must not be lost.
    #[error(
        "{span} of lane `{lane}` is in the window and not in the request, byte for byte: another hook changed the request; have it \
         leave the history alone, or give each run a window of its own"
    )]
    Missing {
        /// The span.
        span: SpanId,
        /// Its lane.
        lane: &'static str,
    },
    /// The request's calls and results do not pair.
    #[error(
        "the request is no conversation that a provider takes: {0}; have no other hook take calls or results out of the history"
    )]
    Unpaired(#[from] TranscriptError),
    /// The request does not fit the budget, with what is in it beside the window.
    #[error(
        "the request takes {needed} tokens and the limit is {limit}: {messages} in messages, {beside} in tools and documents, for \
         which the budget has {fixed} (`fixed`); raise `fixed` to what they take, so that the window makes room for them, or \
         raise the budget"
    )]
    OverBudget {
        /// What the request takes, in tokens.
        needed: u64,
        /// What it may take.
        limit: u64,
        /// What its messages take.
        messages: u64,
        /// What its tools and documents take, as estimated.
        beside: u64,
        /// What the budget sets aside for these.
        fixed: u64,
    },
    /// A hook after this one changed the request, which was sent.
    #[error("a hook that was added after keepspan's changed the request, and it was sent: {0}; add keepspan's last")]
    Sent(#[source] Box<Self>),
}
