//! What the answer to "may this action run now?" is.

use std::fmt;

use super::{Action, Attempt, Denial, Done, FailedAttempt, Permit, Withheld};
use crate::{Content, Unexplained, error::explained};

/// Whether an action may run now, and if not, why; see [`Window::permit`](crate::Window::permit).
#[must_use = "an action runs only on a permit"]
pub enum Permission<'w, A: Action, St> {
    /// It never took effect, and everything it depends on is in the window.
    Fresh(Permit<'w, A, St>),
    /// It was done already, with this outcome.
    Done(Withheld<'w, A, St, Done>),
    /// It failed, and what it failed under still holds.
    Failed(Withheld<'w, A, St, FailedAttempt>),
    /// It was begun and nobody knows whether it took effect: a crash, a time-out or a cancelled future lies between, or it
    /// is running right now.
    Uncertain(Withheld<'w, A, St, Attempt>),
    /// What it depends on is not in the window.
    Denied(Withheld<'w, A, St, Denial>),
}

impl<A: Action, St> fmt::Debug for Permission<'_, A, St> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fresh(permit) => f.debug_tuple("Fresh").field(permit).finish(),
            Self::Done(withheld) => f.debug_tuple("Done").field(&withheld.why).finish(),
            Self::Failed(withheld) => f.debug_tuple("Failed").field(&withheld.why).finish(),
            Self::Uncertain(withheld) => f.debug_tuple("Uncertain").field(&withheld.why).finish(),
            Self::Denied(withheld) => f.debug_tuple("Denied").field(&withheld.why).finish(),
        }
    }
}

impl<'w, A: Action, St> Permission<'w, A, St> {
    /// The permit, where the action is fresh.
    ///
    /// # Errors
    /// [`NotPermitted`] has what is known otherwise.
    pub fn fresh(self) -> Result<Permit<'w, A, St>, NotPermitted> {
        match self {
            Self::Fresh(permit) => Ok(permit),
            Self::Done(withheld) => Err(NotPermitted::Done(Box::new(withheld.why))),
            Self::Failed(withheld) => Err(NotPermitted::Failed(Box::new(withheld.why))),
            Self::Uncertain(withheld) => Err(NotPermitted::Uncertain(Box::new(withheld.why))),
            Self::Denied(withheld) => Err(NotPermitted::Denied(withheld.why)),
        }
    }
}

/// Why an action did not get its permit, without the window.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotPermitted {
    /// It was done already.
    #[error("{0}, and its outcome is on record: a repeat that is wanted takes `repeat(Override::because(..)?)`")]
    Done(Box<Done>),
    /// It failed before.
    #[error("{0}")]
    Failed(Box<FailedAttempt>),
    /// It may have been done.
    #[error("{0}")]
    Uncertain(Box<Attempt>),
    /// What it depends on is not in the window.
    #[error(transparent)]
    Denied(Denial),
}

/// The wish to run an action although its signature is on record; the reason is logged with the attempt (rule R19).
#[derive(Clone, Debug)]
pub struct Override(pub(super) String);

impl Override {
    /// An override with the reason that whoever audits the action will read.
    ///
    /// # Errors
    /// When the reason is blank.
    pub fn because(reason: impl Into<String>) -> Result<Self, Unexplained> {
        explained("reason", reason).map(Self)
    }
}

/// The wish to act on a window that is [lossy](crate::Fidelity::Lossy); the reason is logged with the attempt (rule R23).
#[derive(Clone, Debug)]
pub struct AcceptLossy(pub(super) String);

impl AcceptLossy {
    /// An acceptance with the reason that whoever audits the action will read.
    ///
    /// # Errors
    /// When the reason is blank.
    pub fn because(reason: impl Into<String>) -> Result<Self, Unexplained> {
        explained("reason", reason).map(Self)
    }
}

/// What was found out about an uncertain attempt.
#[derive(Clone, Debug)]
pub struct Settlement {
    pub(super) content: Option<Content>,
    pub(super) how: String,
}

impl Settlement {
    /// It took effect, and this is its outcome; `how` says how that is known.
    ///
    /// # Errors
    /// When `how` is blank.
    pub fn done(content: impl Into<Content>, how: impl Into<String>) -> Result<Self, Unexplained> {
        Ok(Self { content: Some(content.into()), how: explained("reason", how)? })
    }

    /// It did not take effect, and will not any more; `how` says how that is known. The action is fresh again.
    ///
    /// # Errors
    /// When `how` is blank.
    pub fn not_done(how: impl Into<String>) -> Result<Self, Unexplained> {
        Ok(Self { content: None, how: explained("reason", how)? })
    }
}
