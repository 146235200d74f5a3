//! What is known of a request: its attempts, and what each came to.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use super::{
    Signature,
    record::{Attempted, Ending, FailureRecord, Intent},
};
use crate::{Content, Digest, EpisodeId, SpanId};

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
    pub(super) why: Option<String>,
}

impl Attempt {
    pub(super) fn of(signature: Signature, number: u64, intent: Intent) -> Self {
        Self { signature, number, intent, why: None }
    }

    /// What a service that takes such keys was given; see [`Granted::idempotency_key`](super::Granted::idempotency_key).
    pub fn idempotency_key(&self) -> String {
        idempotency_key(&self.signature, self.number)
    }

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

    /// What the request is, as [`Action::describe`](super::Action::describe) said.
    pub fn about(&self) -> Option<&str> {
        self.intent.about.as_deref()
    }

    /// Why it is open whether it took effect, where its own episode asks and its effect ended so; none where nothing came
    /// back from it.
    pub fn why(&self) -> Option<&str> {
        self.why.as_deref()
    }

    /// The reason of its [`Override`](super::Override), where it repeated another.
    pub fn repeats(&self) -> Option<&str> {
        self.intent.repeats.as_deref()
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, intent: Intent { action, episode, record, about, .. }, why, .. } = self;
        write!(f, "attempt {number} of `{action}`")?;
        if let Some(about) = about {
            write!(f, " ({about})")?;
        }
        write!(f, " by episode `{episode}` (record {record}) may have taken effect")?;
        match why {
            Some(why) => write!(f, ": {why}")?,
            None => f.write_str(", since no outcome is on record, or may be running now")?,
        }
        f.write_str("; look at what it changes, then `settle` it")
    }
}

/// The same for an attempt wherever it is asked for, and another for every other one.
pub(super) fn idempotency_key(signature: &Signature, attempt: u64) -> String {
    format!("{signature}-{attempt}")
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
    pub(super) fn of(attempt: Attempt, content: Content, sha256: Digest, time: u64) -> Self {
        Self { attempt, content: Some(content), sha256, time, how: None }
    }

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

    /// How it is known that it was done, where that was [settled](super::Settlement) later.
    pub fn settled(&self) -> Option<&str> {
        self.how.as_deref()
    }
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Attempt { number, intent: Intent { action, episode, record, .. }, .. } = &self.attempt;
        write!(f, "`{action}` was done, by attempt {number} in episode `{episode}` (record {record})")
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
            () if failure.until.is_some() => {
                "; wait until the time that `until` says, or `repeat(Override::because(..)?)`"
            }
            () if failure.under.is_empty() => {
                "; it requires no lane whose change would end that: `repeat(Override::because(..)?)`"
            }
            () => "; what it depends on has not changed since: change that, or `repeat(Override::because(..)?)`",
        })
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
        let attempt = Attempt::of(signature, number, intent);
        match ending {
            None => Self::Open(attempt),
            Some(Ending::Done { sha256, text, time, how }) => Self::Done { attempt, sha256, text, time, how },
            Some(Ending::Failed(failure)) => Self::Failed(FailedAttempt { attempt, failure }),
            Some(Ending::NotDone { .. }) => Self::NotDone,
        }
    }
}
