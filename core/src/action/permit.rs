//! A permit: one action, one window, one moment, one run (rules R17, R19).

use std::{fmt, marker::PhantomData, ops::Deref};

use super::{
    Action, Failure, PermitError, RunError, Signature,
    ask::done_after_all,
    denial::{Denial, denial, versions},
    failure::How,
    permission::{AcceptLossy, Attempt, Done, FailedAttempt, Override, Settlement, Withheld},
    record::{self, Ending, FailureRecord, Intent},
};
use crate::{
    CommitError, Content, Digest, SpanId, TokenCounter,
    evidence::{Consent, Evidence, EvidenceError},
    journal::{Event, IntentRecord, now},
    policy::{Governed, Permitted},
    rule::{Agreed, Grounded, Justifies, RunsOn, RunsWith, Unasked, Ungrounded},
    store::{AsyncStore, Blob, Claim, Store, StoreError},
    window::{
        Operation, Restore, Shared, Step, at_once, contents::Contents, externalized, fresh_plan, run, step::Plan,
    },
};

/// An action that a window was asked about.
pub(super) struct Asked<'w, A: Action, St> {
    pub(super) shared: &'w Shared<St>,
    pub(super) action: &'w A,
    pub(super) signature: Signature,
    pub(super) lanes: Vec<u16>,
    /// The number of the attempt that a permit is for.
    pub(super) attempt: u64,
    pub(super) repeats: Option<String>,
    pub(super) lossy: Option<String>,
}

impl<'w, A: Action, St> Asked<'w, A, St> {
    /// The permit, where the window shows what the action depends on.
    pub(super) fn granted(self) -> Result<Permit<'w, A, St>, Withheld<'w, A, St, Denial>> {
        let denial = denial(self.action, &self.lanes, self.lossy.is_some(), &self.shared.lock());
        match denial {
            None => Ok(Permit { asked: self, evidence: Vec::new(), consent: None, marker: PhantomData }),
            Some(why) => Err(Withheld { asked: self, why }),
        }
    }

    fn repeated(mut self, Override(reason): Override) -> Result<Permit<'w, A, St>, Withheld<'w, A, St, Denial>> {
        self.attempt = self.attempt.saturating_add(1);
        self.repeats = Some(reason);
        self.granted()
    }
}

macro_rules! repeats {
    ($($why:ty),*) => { $(
        impl<'w, A: Action, St> Withheld<'w, A, St, $why> {
            /// The permit after all, for a repeat that is wanted: the reason is logged with the attempt (rule R19). The lanes that
            /// the action requires must be in the window all the same.
            ///
            /// # Errors
            /// The [`Denial`], where they are not.
            pub fn repeat(self, reason: Override) -> Result<Permit<'w, A, St>, Withheld<'w, A, St, Denial>>
            where
                <A::State as Governed>::Policy: Permitted<Override, A, A::State>,
            {
                self.asked.repeated(reason)
            }
        }
    )* };
}
repeats!(Done, FailedAttempt, Attempt);

impl<'w, A: Action, St> Withheld<'w, A, St, Denial> {
    /// Brings back into the window what the action depends on, each span with its whole exchange; then ask for the permit
    /// again. One commit; the spans' ids.
    pub fn bring_back(self) -> Step<'w, St, Restore> {
        Step::new(self.asked.shared, Restore { lane: None, spans: self.why.away() })
    }

    /// Asks again, now that it is said why it does not matter that the window is lossy.
    ///
    /// # Errors
    /// The [`Denial`], for what else is missing.
    pub fn accept_lossy(mut self, AcceptLossy(reason): AcceptLossy) -> Result<Permit<'w, A, St>, Self>
    where
        <A::State as Governed>::Policy: Permitted<AcceptLossy, A, A::State>,
    {
        self.asked.lossy = Some(reason);
        self.asked.granted()
    }
}

impl<'w, A: Action, St> Withheld<'w, A, St, Attempt> {
    /// Puts on record what was found out about the attempt; then ask for the permit again.
    ///
    /// # Errors
    /// [`CommitError::Claimed`] where it ended meanwhile; nothing was written then.
    pub fn settle(self, settlement: Settlement) -> Step<'w, St, Settle> {
        Step::new(self.asked.shared, Settle::of(&self.why, settlement))
    }
}

/// The permission to run one action, once, in the window that it was asked of. It borrows that window, so nothing is
/// pushed, pruned or changed between the answer and the run; `J` is whether it has evidence, `K` whether a person consented.
#[must_use = "the action has not run: `permit.run(..)`"]
pub struct Permit<'w, A: Action, St, J = Ungrounded, K = Unasked> {
    asked: Asked<'w, A, St>,
    evidence: Vec<SpanId>,
    consent: Option<SpanId>,
    marker: PhantomData<fn() -> (J, K)>,
}

impl<A: Action, St, J, K> fmt::Debug for Permit<'_, A, St, J, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Asked { signature, attempt, .. } = self.asked;
        f.debug_struct("Permit")
            .field("action", &A::NAME)
            .field("signature", &signature)
            .field("attempt", &attempt)
            .finish_non_exhaustive()
    }
}

/// The action itself, for what runs it. Only [`Permit::run`] makes one, so a function that takes it cannot be called without a
/// permit: `fn drop_table(db: &Db, request: Granted<'_, DropTable>)`.
#[derive(Debug)]
pub struct Granted<'g, A>(&'g A);

impl<A> Deref for Granted<'_, A> {
    type Target = A;

    fn deref(&self) -> &A {
        self.0
    }
}

impl<'w, A: Action, St, J, K> Permit<'w, A, St, J, K> {
    /// The number of this attempt: 1 for the first.
    pub fn attempt(&self) -> u64 {
        self.asked.attempt
    }

    /// Says what justifies the action; a destructive one takes first-hand evidence only (rule R20). Each is on record.
    ///
    /// # Errors
    /// [`EvidenceError`]: it was superseded, left the window, or is of another one.
    pub fn justified_by<T>(self, evidence: &Evidence<T>) -> Result<Permit<'w, A, St, Grounded, K>, EvidenceError>
    where
        T: Justifies<A, A::Effect>,
    {
        self.asked.shared.lock().holds(evidence)?;
        let Self { asked, evidence: mut all, consent, .. } = self;
        all.push(evidence.span());
        Ok(Permit { asked, evidence: all, consent, marker: PhantomData })
    }

    /// Says who agreed. It covers this request once: to run it again, ask again.
    ///
    /// # Errors
    /// [`EvidenceError`]: what the person said left the window or was superseded, or is of another window.
    pub fn consented_by(self, consent: Consent) -> Result<Permit<'w, A, St, J, Agreed>, EvidenceError> {
        self.asked.shared.lock().stands(&consent)?;
        let Self { asked, evidence, .. } = self;
        Ok(Permit { asked, evidence, consent: Some(consent.span()), marker: PhantomData })
    }

    /// Runs the action: writes the intent, durably, with whatever of the window is not in the store yet; calls `effect`;
    /// writes the outcome. What `effect` returns is kept under the signature, and given to whoever asks for the same again.
    ///
    /// An error that does not say [`Failure::without_effect`], a panic or the end of the process in between leave the
    /// attempt [uncertain](super::Permission::Uncertain), never fresh. Of many who run the same request at once, in
    /// whatever process, one does. Two durable writes.
    ///
    /// # Errors
    /// [`RunError`], which says whether the action ran.
    pub fn run<T, F>(self, effect: F) -> Result<Done, RunError>
    where
        St: Store,
        T: Into<Content>,
        F: FnOnce(Granted<'_, A>) -> Result<T, Failure>,
        J: RunsOn<A, A::Effect>,
        K: RunsWith<A, A::Consent>,
    {
        at_once(self.run_async(async |granted: Granted<'_, A>| effect(granted)))
    }

    /// As [`run`](Self::run), for an effect that takes its time, or a store that does. A future that is dropped in between
    /// leaves the attempt uncertain.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn run_async<T, F>(self, effect: F) -> Result<Done, RunError>
    where
        St: AsyncStore,
        T: Into<Content>,
        F: AsyncFnOnce(Granted<'_, A>) -> Result<T, Failure>,
        J: RunsOn<A, A::Effect>,
        K: RunsWith<A, A::Consent>,
    {
        let Self { asked, evidence, consent, .. } = self;
        let Asked { shared, action, signature, attempt, .. } = asked;
        if action.signature() != signature {
            return Err(RunError::Changed { action: A::NAME });
        }
        let spent = consent.map(|span| (span, record::consent(&shared.lock().episode, span, &signature)));
        let intend = Intend::of(asked, evidence, spent.clone());
        let lanes = intend.record.requires.clone();
        let intent = run(shared, intend).await.map_err(|error| first(error, A::NAME, spent))?;
        let end = |how| End { signature, attempt, action: A::NAME.to_owned(), how };
        let failure = match effect(Granted(action)).await {
            Ok(content) => {
                let content = content.into();
                let done = run(shared, end(Ended::Done(content.clone(), None))).await;
                return match done {
                    Ok((sha256, time)) => {
                        let attempt = Attempt { signature, number: attempt, intent };
                        Ok(Done { attempt, content: Some(content), sha256, time, how: None })
                    }
                    Err(CommitError::Claimed { .. }) => {
                        let done = done_after_all(shared, signature, A::NAME, content.clone()).await;
                        done.ok_or(RunError::Settled { action: A::NAME, content })
                    }
                    Err(source) => Err(RunError::Unrecorded { action: A::NAME, content, source }),
                };
            }
            Err(failure) => failure,
        };
        let Failure { how, why, source, .. } = &failure;
        let how = match how {
            How::Unknown => Ended::Doubted(why.clone()),
            How::WithoutEffect | How::Refused => Ended::Failed(failed(&failure, &lanes, &shared.lock())),
        };
        let uncertain = matches!(how, Ended::Doubted(_));
        let (why, _) = (why.clone(), source);
        match run(shared, end(how)).await {
            Ok(_) if !uncertain => Err(RunError::Failed { action: A::NAME, why, source: failure.source }),
            recorded => {
                Err(RunError::Uncertain { action: A::NAME, why, source: failure.source, unrecorded: recorded.err() })
            }
        }
    }
}

/// A failure as it is kept, with what it failed under.
pub(super) fn failed(failure: &Failure, lanes: &[u16], contents: &Contents) -> FailureRecord {
    let until = failure.until.and_then(|until| until.duration_since(std::time::SystemTime::UNIX_EPOCH).ok());
    FailureRecord {
        why: failure.why.clone(),
        refused: failure.how == How::Refused,
        until: until.map(|until| u64::try_from(until.as_millis()).unwrap_or(u64::MAX)),
        under: versions(lanes, contents),
        policy: contents.policy.name().to_owned(),
        episode: contents.episode.clone(),
        shown_in: failure.shown_in,
        time: now(),
    }
}

/// Who was first, where it was somebody else.
fn first(error: CommitError, action: &'static str, spent: Option<(SpanId, Claim)>) -> RunError {
    match (error, spent) {
        (CommitError::Claimed { signature }, Some((span, consent))) if signature == consent.signature => {
            RunError::Spent { action, span }
        }
        (CommitError::Claimed { .. }, _) => RunError::Taken { action },
        (error, _) => RunError::Commit(error),
    }
}

/// Writes that an action is about to run.
pub(super) struct Intend {
    record: IntentRecord,
    signature: Signature,
    consent: Option<Claim>,
}

impl Intend {
    fn of<A: Action, St>(asked: Asked<'_, A, St>, evidence: Vec<SpanId>, spent: Option<(SpanId, Claim)>) -> Self {
        let Asked { signature, lanes, attempt, repeats, lossy, .. } = asked;
        let (consent, claim) = spent.unzip();
        let record = IntentRecord {
            signature: *signature.digest(),
            attempt,
            action: A::NAME.to_owned(),
            requires: lanes,
            evidence,
            consent,
            repeats,
            lossy,
        };
        Self { record, signature, consent: claim }
    }
}

impl<'w, St: 'w> Operation<'w, St> for Intend {
    type Output = Intent;
    type Error = CommitError;
    type Effect = (Vec<(SpanId, Digest)>, (Digest, u64), Intent);

    fn plan(self, contents: &Contents, _: &dyn TokenCounter) -> Result<Plan<Self::Effect>, CommitError> {
        let Self { record, signature, consent } = self;
        let Plan { blobs, mut events, effect, .. } = fresh_plan(contents);
        let intent = Intent {
            episode: contents.episode.clone(),
            record: contents.length,
            time: now(),
            action: record.action.clone(),
            repeats: record.repeats.clone(),
        };
        let claim = intent.claim(&signature, record.attempt).map_err(|error| CommitError::Record(error.into()))?;
        let attempt = (record.signature, record.attempt);
        events.push(Event::Intended(record));
        let claims = consent.into_iter().chain([claim]).collect();
        Ok(Plan { blobs, claims, events, ..Plan::new((effect, attempt, intent)) })
    }

    fn apply(
        (fresh, attempt, intent): Self::Effect,
        _: Vec<Vec<u8>>,
        contents: &mut Contents,
        _: &'w Shared<St>,
    ) -> Intent {
        externalized(&fresh, contents);
        contents.unsettled.insert(attempt, intent.clone());
        intent
    }
}

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
    pub(super) action: String,
    pub(super) how: Ended,
}

impl<'w, St: 'w> Operation<'w, St> for End {
    type Output = (Digest, u64);
    type Error = CommitError;
    /// With the attempt, where that is settled by it.
    type Effect = ((Digest, u64), Option<(Digest, u64)>);

    fn plan(self, _: &Contents, _: &dyn TokenCounter) -> Result<Plan<Self::Effect>, CommitError> {
        let Self { signature, attempt, action, how } = self;
        let time = now();
        let mut plan = Plan::new(((Digest::from_bytes([0; 32]), time), None));
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
                plan.events.push(Event::Doubted { signature: *signature.digest(), attempt, action, why });
                return Ok(plan);
            }
        };
        plan.claims.push(ending.claim(&signature, attempt).map_err(|error| CommitError::Record(error.into()))?);
        plan.effect.1 = Some((*signature.digest(), attempt));
        plan.events.push(Event::Ended { signature: *signature.digest(), attempt, action, ending });
        Ok(plan)
    }

    fn apply(
        (ended, settled): Self::Effect,
        _: Vec<Vec<u8>>,
        contents: &mut Contents,
        _: &'w Shared<St>,
    ) -> Self::Output {
        settled.map(|attempt| contents.unsettled.remove(&attempt));
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
        let (signature, number, action) = (attempt.signature, attempt.number, attempt.intent.action.clone());
        Self(End { signature, attempt: number, action, how })
    }
}

impl<'w, St: 'w> Operation<'w, St> for Settle {
    type Output = ();
    type Error = CommitError;
    type Effect = ((Digest, u64), Option<(Digest, u64)>);

    fn plan(self, contents: &Contents, counter: &dyn TokenCounter) -> Result<Plan<Self::Effect>, CommitError> {
        <End as Operation<'w, St>>::plan(self.0, contents, counter)
    }

    fn apply(effect: Self::Effect, fetched: Vec<Vec<u8>>, contents: &mut Contents, shared: &'w Shared<St>) {
        <End as Operation<'w, St>>::apply(effect, fetched, contents, shared);
    }
}

impl From<StoreError> for PermitError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
