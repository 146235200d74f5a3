//! What can go wrong before and while an action runs.

use super::{Attempt, Done};
use crate::{CommitError, Content, SpanId, store::StoreError};

/// Why a window did not say whether an action may run. Nothing ran.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PermitError {
    /// The store did not answer, or what it has of the request is damaged.
    #[error(transparent)]
    Store(StoreError),
    /// A commit of this window is in doubt, or could not be made.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// The action requires a lane that its state struct does not have, or one that is not protected (rule R18).
    #[error(
        "`{action}` requires `{lane}`, which is no protected lane of its state struct: derive `Action`, do not write it by hand"
    )]
    NoLane {
        /// The action.
        action: &'static str,
        /// The lane.
        lane: &'static str,
    },
    /// A failure was to be noted that leaves open whether the action took effect.
    #[error(
        "whether `{action}` took effect is open: note a failure that is `without_effect` or `refused`, and run what may take effect on a permit"
    )]
    Unknown {
        /// The action.
        action: &'static str,
    },
    /// A failure was to be noted of a request that may have been done.
    #[error("{0}; then note the failure")]
    Unsettled(Box<Attempt>),
    /// A failure was to be noted of a request that was done: it is not run again in any case.
    #[error("{0}: it is not run again in any case, and nothing was noted")]
    Done(Box<Done>),
}

/// Why an action was not done, or is not known to be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// It did not run: its intent could not be put on record. Where that commit got no answer, or its texts did not come back
    /// as they were written, it may be on record all the same, and the attempt is then uncertain although it never ran.
    #[error("the action did not run, since its intent could not be recorded: {0}")]
    Commit(#[source] CommitError),
    /// It did not run here: another window was first. Ask for a permit again, which says what became of it.
    #[error(
        "`{action}` did not run here: another window claimed this attempt first; ask for a permit again, which says what became of it"
    )]
    Taken {
        /// The action.
        action: &'static str,
    },
    /// It did not run: the consent was given to a run before, and is spent.
    #[error("`{action}` did not run: the consent in {span} was spent by an earlier run; ask the person again")]
    Spent {
        /// The action.
        action: &'static str,
        /// What the person said.
        span: SpanId,
    },
    /// It did not run: the request is not what the permit was given for.
    #[error(
        "`{action}` did not run: the request changed since the permit was given; ask for a permit for what it is now"
    )]
    Changed {
        /// The action.
        action: &'static str,
    },
    /// It ran, failed, and took no effect; that is on record.
    #[error("`{action}` failed without effect: {why}")]
    Failed {
        /// The action.
        action: &'static str,
        /// Why.
        why: String,
        /// What the effect gave: its text, with all under it, is in `why`.
        error: Box<dyn std::error::Error + Send + Sync>,
    },
    /// It ran, and may have taken effect.
    #[error(
        "`{action}` may have taken effect: {why}; look at what it changes, then ask for a permit again and `settle` the attempt"
    )]
    Uncertain {
        /// The action.
        action: &'static str,
        /// Why that is not known.
        why: String,
        /// What the effect gave: its text, with all under it, is in `why`.
        error: Box<dyn std::error::Error + Send + Sync>,
        /// Why not even that is on record; a next permit says `Uncertain` all the same.
        unrecorded: Option<CommitError>,
    },
    /// It was done, and somebody settled the attempt meanwhile, as a permit will tell.
    #[error(
        "`{action}` was done, and somebody settled the attempt while it ran: ask for a permit again, and compare what it says with this outcome"
    )]
    Settled {
        /// The action.
        action: &'static str,
        /// What it gave.
        content: Content,
    },
    /// It was done, and that could not be put on record: until it is settled, the attempt is uncertain.
    #[error(
        "`{action}` was done, and its outcome could not be recorded: {source}; `Window::recover` if the store did not answer, then ask for a permit again and `settle` the attempt with the outcome"
    )]
    Unrecorded {
        /// The action.
        action: &'static str,
        /// What it gave.
        content: Content,
        /// What the store said.
        source: CommitError,
    },
}

impl From<StoreError> for PermitError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
