//! What the answer to "may this action run now?" is.

use std::{
    fmt,
    ops::Deref,
    time::{Duration, SystemTime},
};

use super::{
    Action, Permit, Signature,
    denial::Denial,
    permit::Asked,
    record::{Attempted, Ending, FailureRecord, Intent},
};
use crate::{Content, Digest, EpisodeId, SpanId, Unexplained};

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
            Self::Done(withheld) => Err(NotPermitted::Done(withheld.why)),
            Self::Failed(withheld) => Err(NotPermitted::Failed(withheld.why)),
            Self::Uncertain(withheld) => Err(NotPermitted::Uncertain(withheld.why)),
            Self::Denied(withheld) => Err(NotPermitted::Denied(withheld.why)),
        }
    }
}

/// A permit that was not given, with why: `T` is [`Done`], [`FailedAttempt`], [`Attempt`] or [`Denial`], which it derefs to.
#[must_use = "the action did not run"]
pub struct Withheld<'w, A: Action, St, T> {
    pub(super) asked: Asked<'w, A, St>,
    pub(super) why: T,
}

impl<A: Action, St, T> Withheld<'_, A, St, T> {
    /// What is known, without the window.
    pub fn into_inner(self) -> T {
        self.why
    }
}

impl<A: Action, St, T> Deref for Withheld<'_, A, St, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.why
    }
}

impl<A: Action, St, T: fmt::Debug> fmt::Debug for Withheld<'_, A, St, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Withheld").field(&self.why).finish()
    }
}

impl<A: Action, St, T: fmt::Display> fmt::Display for Withheld<'_, A, St, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.fmt(f)
    }
}

/// What is known of a request; see [`Window::tried`](crate::Window::tried).
#[derive(Clone, Debug)]
pub enum Tried {
    /// Nobody attempted it, or what it failed under has changed since.
    Never {
        /// The attempt before, which says why it failed then.
        before: Option<FailedAttempt>,
    },
    /// It was done.
    Done(Done),
    /// It failed without effect, and that still holds.
    Failed(FailedAttempt),
    /// It was begun, and nobody knows whether it took effect.
    Uncertain(Attempt),
}

/// One attempt of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    pub(super) signature: Signature,
    pub(super) number: u64,
    pub(super) intent: Intent,
}

impl Attempt {
    /// The request.
    pub fn signature(&self) -> Signature {
        self.signature
    }

    /// 1 for the first.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The action's name.
    pub fn action(&self) -> &str {
        &self.intent.action
    }

    /// The episode that made it.
    pub fn episode(&self) -> &EpisodeId {
        &self.intent.episode
    }

    /// The record of that episode's log that was written before it ran.
    pub fn record(&self) -> u64 {
        self.intent.record
    }

    /// When it began, by the clock of whoever made it.
    pub fn begun(&self) -> SystemTime {
        time(self.intent.time)
    }

    /// The reason of its [`Override`], where it repeated another.
    pub fn repeats(&self) -> Option<&str> {
        self.intent.repeats.as_deref()
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, intent, .. } = self;
        write!(
            f,
            "attempt {number} of `{}` was begun by episode `{}` (record {}), and no outcome is on record: it may have taken \
             effect, or may be running now; look at what it changes, then `settle` it",
            intent.action, intent.episode, intent.record
        )
    }
}

/// An action that was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    pub(super) attempt: Attempt,
    pub(super) content: Option<Content>,
    pub(super) sha256: Digest,
    pub(super) time: u64,
    pub(super) how: Option<String>,
}

impl Done {
    /// The attempt that did it.
    pub fn attempt(&self) -> &Attempt {
        &self.attempt
    }

    /// What it gave, byte for byte, verified against its SHA-256; none where that text was redacted since.
    pub fn content(&self) -> Option<&Content> {
        self.content.as_ref()
    }

    /// What it gave, where that is text.
    pub fn text(&self) -> Option<&str> {
        self.content.as_ref()?.as_text()
    }

    /// SHA-256 of what it gave.
    pub fn sha256(&self) -> Digest {
        self.sha256
    }

    /// When it ended, or was settled.
    pub fn ended(&self) -> SystemTime {
        time(self.time)
    }

    /// How it is known that it was done, where that was [settled](Settlement) later.
    pub fn settled(&self) -> Option<&str> {
        self.how.as_deref()
    }
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Attempt { number, intent, .. } = &self.attempt;
        write!(
            f,
            "`{}` was done already, by attempt {number} in episode `{}` (record {}): its outcome is on record; a repeat that is \
             wanted takes `repeat(Override::because(..)?)`",
            intent.action, intent.episode, intent.record
        )
    }
}

/// An attempt that failed without effect: a negative result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedAttempt {
    pub(super) attempt: Attempt,
    pub(super) failure: FailureRecord,
}

impl FailedAttempt {
    /// The attempt.
    pub fn attempt(&self) -> &Attempt {
        &self.attempt
    }

    /// Why it failed.
    pub fn why(&self) -> &str {
        &self.failure.why
    }

    /// Whether somebody [refused](super::Failure::refused) it.
    pub fn is_refused(&self) -> bool {
        self.failure.refused
    }

    /// The time from which it may be tried again.
    pub fn until(&self) -> Option<SystemTime> {
        self.failure.until.map(time)
    }

    /// What it failed under: each lane it requires, with a digest over what that held.
    pub fn under(&self) -> impl Iterator<Item = (&str, Digest)> {
        self.failure.under.iter().map(|(lane, version)| (lane.as_str(), *version))
    }

    /// The policy version that was in force.
    pub fn policy(&self) -> &str {
        &self.failure.policy
    }

    /// The span that shows it, in the episode of the attempt.
    pub fn shown_in(&self) -> Option<SpanId> {
        self.failure.shown_in
    }
}

impl fmt::Display for FailedAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { attempt: Attempt { number, intent, .. }, failure } = self;
        let what = if failure.refused { "was refused" } else { "failed" };
        write!(f, "attempt {number} of `{}` {what} in episode `{}`: {}", intent.action, intent.episode, failure.why)?;
        if let Some(span) = failure.shown_in {
            write!(f, " ({span})")?;
        }
        f.write_str(match () {
            () if failure.refused => "; that holds until `repeat(Override::because(..)?)`",
            () if failure.until.is_some() => "; wait, or `repeat(Override::because(..)?)`",
            () => "; what it depends on has not changed since: change that, or `repeat(Override::because(..)?)`",
        })
    }
}

/// Why an action did not get its permit, without the window.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotPermitted {
    /// It was done already.
    #[error("{0}")]
    Done(Done),
    /// It failed before.
    #[error("{0}")]
    Failed(FailedAttempt),
    /// It may have been done.
    #[error("{0}")]
    Uncertain(Attempt),
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
        explained(reason.into()).map(Self)
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
        explained(reason.into()).map(Self)
    }
}

fn explained(reason: String) -> Result<String, Unexplained> {
    if reason.trim().is_empty() { Err(Unexplained { what: "reason" }) } else { Ok(reason) }
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
        Ok(Self { content: Some(content.into()), how: explained(how.into())? })
    }

    /// It did not take effect, and will not any more; `how` says how that is known. The action is fresh again.
    ///
    /// # Errors
    /// When `how` is blank.
    pub fn not_done(how: impl Into<String>) -> Result<Self, Unexplained> {
        Ok(Self { content: None, how: explained(how.into())? })
    }
}

pub(super) fn time(millis: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(millis)).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// What an attempt of a request came to.
pub(super) enum Latest {
    Done { attempt: Attempt, sha256: Digest, text: bool, time: u64, how: Option<String> },
    Failed(FailedAttempt),
    NotDone,
    Open(Attempt),
}

impl Latest {
    pub(super) fn of(signature: Signature, Attempted { number, intent, ending }: Attempted) -> Self {
        let attempt = Attempt { signature, number, intent };
        match ending {
            None => Self::Open(attempt),
            Some(Ending::Done { sha256, text, time, how }) => Self::Done { attempt, sha256, text, time, how },
            Some(Ending::Failed(failure)) => Self::Failed(FailedAttempt { attempt, failure }),
            Some(Ending::NotDone { .. }) => Self::NotDone,
        }
    }
}
