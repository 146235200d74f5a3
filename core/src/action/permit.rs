//! A permit: one action, one window, one moment, one run (rules R17, R19).

use std::{fmt, marker::PhantomData, ops::Deref};

use super::{
    Action, Attempt, Done, FailedAttempt, Failure, RunError, Signature,
    ask::{done_after_all, doubted_after_all},
    attempt::idempotency_key,
    end::{End, Ended, failed},
    intend::{Intend, first},
    withheld::Asked,
};
use crate::{
    CommitError, Content, IntoContent, SpanId,
    evidence::{Consent, Evidence, EvidenceError},
    rule::{Consented, Grounded, Justifies, RunsOn, RunsWith, Unconsented, Ungrounded},
    store::{AsyncStore, Store},
    window::{Shared, at_once, run},
};

/// The permission to run one action, once, in the window that it was asked of. It borrows that window, so nothing is
/// pushed, pruned or changed between the answer and the run; `J` is whether it has evidence, `K` whether a person consented.
#[must_use = "the action has not run: `permit.run(..)`"]
pub struct Permit<'w, A: Action, St, J = Ungrounded, K = Unconsented> {
    asked: Box<Asked<'w, A, St>>,
    evidence: Vec<SpanId>,
    consent: Option<Consent>,
    marker: PhantomData<fn() -> (J, K)>,
}

impl<A: Action, St, J, K> fmt::Debug for Permit<'_, A, St, J, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Asked { signature, attempt, .. } = &*self.asked;
        f.debug_struct("Permit")
            .field("action", &A::NAME)
            .field("signature", signature)
            .field("attempt", attempt)
            .finish_non_exhaustive()
    }
}

/// The action itself, for what runs it. Only [`Permit::run`] and [`run_async`](Permit::run_async) make one, so a function that takes it cannot be called without a
/// permit: `fn drop_table(db: &Db, request: Granted<'_, DropTable>)`.
#[derive(Debug)]
pub struct Granted<'g, A> {
    action: &'g A,
    signature: Signature,
    attempt: u64,
}

impl<A> Granted<'_, A> {
    /// A key for a service that takes one for each request, so that it, too, does the same once: the signature and the number
    /// of the attempt. Not a method, as the action's own come first: `Granted::idempotency_key(&request)`.
    pub fn idempotency_key(this: &Self) -> String {
        idempotency_key(&this.signature, this.attempt)
    }
}

impl<A> Deref for Granted<'_, A> {
    type Target = A;

    fn deref(&self) -> &A {
        self.action
    }
}

impl<'w, A: Action, St> Permit<'w, A, St> {
    pub(super) fn of(asked: Box<Asked<'w, A, St>>) -> Self {
        Self { asked, evidence: Vec::new(), consent: None, marker: PhantomData }
    }
}

impl<'w, A: Action, St, J, K> Permit<'w, A, St, J, K> {
    /// The number of this attempt: 1 for the first.
    pub fn attempt(&self) -> u64 {
        self.asked.attempt
    }

    /// The attempt before, where it failed without effect under what does not hold any more.
    pub fn failed_before(&self) -> Option<&FailedAttempt> {
        self.asked.before.as_ref()
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

    /// Says who agreed. That is spent when the action runs, and only then it shows whether it was spent before.
    ///
    /// # Errors
    /// [`EvidenceError`]: what the person said left the window or was superseded, or is of another window.
    pub fn consented_by(self, consent: Consent) -> Result<Permit<'w, A, St, J, Consented>, EvidenceError> {
        self.asked.shared.lock().stands(&consent)?;
        let Self { asked, evidence, .. } = self;
        Ok(Permit { asked, evidence, consent: Some(consent), marker: PhantomData })
    }

    /// Runs the action: writes the intent, durably, with whatever of the window is not in the store yet; calls `effect`;
    /// writes the outcome. What `effect` returns, text, bytes or JSON, is kept under the signature, and given to whoever asks for
    /// the same again. An effect that needs more than the request captures it: `permit.run(|request| drop_table(&db, request))`.
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
        T: IntoContent,
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
        T: IntoContent,
        F: AsyncFnOnce(Granted<'_, A>) -> Result<T, Failure>,
        J: RunsOn<A, A::Effect>,
        K: RunsWith<A, A::Consent>,
    {
        let Self { asked, evidence, consent, .. } = self;
        let Asked { shared, action, signature, attempt, .. } = *asked;
        // What can change through a shared reference may be another request by now.
        if Signature::of(A::NAME, action) != signature {
            return Err(RunError::Changed { action: A::NAME });
        }
        let lanes = asked.lanes.clone();
        let intend = Intend::of(*asked, evidence, consent);
        let spends = intend.spends();
        let intent = run(shared, intend).await.map_err(|error| first(error, A::NAME, spends))?;
        let begun = Begun { shared, action: A::NAME, attempt: Attempt::of(signature, attempt, intent) };
        match effect(Granted { action, signature, attempt }).await {
            Ok(content) => begun.done(content.into_content()).await,
            Err(failure) => Err(begun.failed(failure, &lanes).await),
        }
    }
}

/// An attempt whose intent is on record, and its effect tried.
struct Begun<'w, St> {
    shared: &'w Shared<St>,
    action: &'static str,
    attempt: Attempt,
}

impl<St: AsyncStore> Begun<'_, St> {
    async fn done(self, content: Content) -> Result<Done, RunError> {
        let Self { shared, action, attempt } = self;
        match run(shared, End::of(&attempt, Ended::Done(content.clone(), None))).await {
            Ok((sha256, time)) => Ok(Done::of(attempt, content, sha256, time)),
            Err(CommitError::Claimed { .. }) => {
                let done = done_after_all(shared, &attempt, content.clone()).await;
                done.ok_or(RunError::Settled { action, content })
            }
            Err(source) => Err(RunError::Unrecorded { action, content, source }),
        }
    }

    async fn failed(self, failure: Failure, lanes: &[u16]) -> RunError {
        let Self { shared, action, attempt } = self;
        let uncertain = failure.is_uncertain();
        let how = if uncertain {
            Ended::Doubted(failure.why.clone())
        } else {
            Ended::Failed(failed(&failure, lanes, &shared.lock()))
        };
        let Failure { why, error, .. } = failure;
        let recorded = run(shared, End::of(&attempt, how)).await;
        if uncertain {
            doubted_after_all(shared, &attempt).await;
        }
        match recorded {
            Ok(_) if !uncertain => RunError::Failed { action, why, error },
            recorded => RunError::Uncertain { action, why, error, unrecorded: recorded.err() },
        }
    }
}
