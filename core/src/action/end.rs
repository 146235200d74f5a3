//! End: what became of an attempt, put on record by whoever ran it or found out (rule R19).

use std::time::SystemTime;

use super::{
    Attempt, Failure, Settlement, Signature,
    failure::How,
    record::{Ending, FailureRecord, Intent},
};
use crate::{
    CommitError, Content, Digest, TokenCounter,
    action::denial::versions,
    journal::{Event, now},
    store::Blob,
    window::{Operation, Shared, contents::Contents, step::Plan},
};

/// What an attempt came to.
#[derive(Debug)]
pub(super) enum Ended {
    Done(Content, Option<String>),
    Failed(FailureRecord),
    NotDone(String),
    Doubted(String),
}

/// Puts on record what became of an attempt. Gives the SHA-256 of what it gave, and when that was.
#[derive(Debug)]
pub(super) struct End {
    pub(super) signature: Signature,
    pub(super) attempt: u64,
    pub(super) intent: Intent,
    pub(super) how: Ended,
}

impl End {
    pub(super) fn of(attempt: &Attempt, how: Ended) -> Self {
        Self { signature: attempt.signature, attempt: attempt.number, intent: attempt.intent.clone(), how }
    }
}

impl<'w, St: 'w> Operation<'w, St> for End {
    type Output = (Digest, u64);
    type Error = CommitError;
    /// With the attempt, and why it is not settled by it, where it is not.
    type Effect = ((Digest, u64), (Digest, u64), Option<String>);

    fn plan(self, _: &Contents, _: &dyn TokenCounter) -> Result<Plan<Self::Effect>, CommitError> {
        let Self { signature, attempt, intent, how } = self;
        let action = intent.action.clone();
        let time = now();
        let this = (*signature.digest(), attempt);
        let mut plan = Plan::new(((Digest::from_bytes([0; 32]), time), this, None));
        let ending = match how {
            Ended::Done(content, how) => {
                let text = content.is_text();
                let blob = Blob::new(content);
                let sha256 = *blob.digest();
                plan.effect.0.0 = sha256;
                plan.blobs.push((None, blob));
                Ending::Done { sha256, text, time, how }
            }
            Ended::Failed(failure) => Ending::Failed(failure),
            Ended::NotDone(how) => Ending::NotDone { how, time },
            Ended::Doubted(why) => {
                plan.effect.2 = Some(why.clone());
                plan.events.push(Event::Doubted { signature: *signature.digest(), attempt, action, why });
                return Ok(plan);
            }
        };
        plan.claims.push(ending.claim(&signature, attempt, &intent)?);
        plan.events.push(Event::Ended { signature: *signature.digest(), attempt, action, ending });
        Ok(plan)
    }

    fn apply(
        (ended, attempt, why): Self::Effect,
        _: Vec<Vec<u8>>,
        contents: &mut Contents,
        _: &'w Shared<St>,
    ) -> Self::Output {
        match why {
            None => drop(contents.unsettled.remove(&attempt)),
            Some(why) => {
                contents.unsettled.entry(attempt).and_modify(|(_, because)| *because = Some(why));
            }
        }
        ended
    }
}

/// Puts on record what was found out about an attempt; see [`Window::settle`](crate::Window::settle).
#[derive(Debug)]
pub struct Settle(End);

impl Settle {
    pub(super) fn of(attempt: &Attempt, Settlement { content, how }: Settlement) -> Self {
        let how = match content {
            Some(content) => Ended::Done(content, Some(how)),
            None => Ended::NotDone(how),
        };
        Self(End::of(attempt, how))
    }
}

impl<'w, St: 'w> Operation<'w, St> for Settle {
    type Output = ();
    type Error = CommitError;
    type Effect = ((Digest, u64), (Digest, u64), Option<String>);

    fn plan(self, contents: &Contents, counter: &dyn TokenCounter) -> Result<Plan<Self::Effect>, CommitError> {
        <End as Operation<'w, St>>::plan(self.0, contents, counter)
    }

    fn apply(effect: Self::Effect, fetched: Vec<Vec<u8>>, contents: &mut Contents, shared: &'w Shared<St>) {
        <End as Operation<'w, St>>::apply(effect, fetched, contents, shared);
    }
}

/// A failure as it is kept, with what it failed under.
pub(super) fn failed(failure: &Failure, lanes: &[u16], contents: &Contents) -> FailureRecord {
    let millis = |until: SystemTime| until.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_millis());
    FailureRecord {
        why: failure.why.clone(),
        refused: failure.how == How::Refused,
        until: failure.until.map(|until| u64::try_from(millis(until)).unwrap_or(u64::MAX)),
        under: versions(lanes, contents),
        policy: contents.policy.name().to_owned(),
        episode: contents.episode.clone(),
        shown_in: failure.shown_in,
        time: now(),
    }
}

/// An attempt that no permit began: it is claimed with its ending, if it has one.
pub(super) struct Noted(pub(super) End);

impl<'w, St: 'w> Operation<'w, St> for Noted {
    type Output = ();
    type Error = CommitError;
    /// Where it has none, the attempt.
    type Effect = Option<((Digest, u64), (Intent, Option<String>))>;

    fn plan(self, contents: &Contents, counter: &dyn TokenCounter) -> Result<Plan<Self::Effect>, CommitError> {
        let Self(end) = self;
        let (signature, attempt, episode) = (end.signature, end.attempt, contents.episode.clone());
        let intent = Intent { episode, record: contents.length, time: now(), repeats: None, ..end.intent };
        let ended = <End as Operation<'w, St>>::plan(End { intent: intent.clone(), ..end }, contents, counter)?;
        let claim = intent.claim(&signature, attempt)?;
        let open = ended.effect.2.map(|why| (ended.effect.1, (intent, Some(why))));
        let claims = ended.claims.into_iter().chain([claim]).collect();
        Ok(Plan { blobs: ended.blobs, events: ended.events, claims, ..Plan::new(open) })
    }

    fn apply(open: Self::Effect, _: Vec<Vec<u8>>, contents: &mut Contents, _: &'w Shared<St>) {
        contents.unsettled.extend(open);
    }
}
