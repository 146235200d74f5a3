//! A permit that was not given, and the ways on from there.

use std::{fmt, ops::Deref};

use super::{
    AcceptLossy, Action, Attempt, Done, FailedAttempt, Override, Permit, Settle, Settlement, Signature,
    denial::{Denial, denial},
};
use crate::{
    RestoreError, SpanId, TokenCounter,
    policy::{Governed, Permitted},
    window::{Operation, Restore, Shared, Step, contents::Contents, step::Plan},
};

/// An action that a window was asked about.
pub(super) struct Asked<'w, A: Action, St> {
    pub(super) shared: &'w Shared<St>,
    pub(super) action: &'w A,
    pub(super) signature: Signature,
    pub(super) lanes: Vec<u16>,
    /// The number of the attempt that a permit is for.
    pub(super) attempt: u64,
    /// The failure before it that holds no more.
    pub(super) before: Option<FailedAttempt>,
    pub(super) repeats: Option<String>,
    pub(super) lossy: Option<String>,
}

/// A permit that was not given, with why: `T` is [`Done`], [`FailedAttempt`], [`Attempt`] or [`Denial`], which it derefs to.
#[must_use = "the action did not run"]
pub struct Withheld<'w, A: Action, St, T> {
    pub(super) asked: Box<Asked<'w, A, St>>,
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

impl<'w, A: Action, St> Asked<'w, A, St> {
    /// The permit, where the window shows what the action depends on.
    pub(super) fn granted(self: Box<Self>) -> Result<Permit<'w, A, St>, Withheld<'w, A, St, Denial>> {
        let denial = denial(self.action, &self.lanes, self.lossy.is_some(), &self.shared.lock());
        match denial {
            None => Ok(Permit::of(self)),
            Some(why) => Err(Withheld { asked: self, why }),
        }
    }

    fn repeated(mut self: Box<Self>, reason: Override) -> Result<Permit<'w, A, St>, Withheld<'w, A, St, Denial>> {
        self.attempt = self.attempt.saturating_add(1);
        self.repeats = Some(reason.0);
        self.granted()
    }
}

macro_rules! repeats {
    ($($why:ty),*) => { $(
        impl<'w, A: Action, St> Withheld<'w, A, St, $why> {
            /// The permit after all, for a repeat that is wanted: the reason is logged with the attempt (rule R19). The lanes that
            /// the action requires must be in the window all the same.
            ///
            /// Where an error must not borrow: `done.repeat(reason).map_err(Withheld::into_inner)?`.
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
    ///
    /// # Errors
    /// [`RestoreError`](crate::RestoreError): nothing of what is missing is in the store, and then the denial says what to do; a
    /// text was redacted meanwhile; the commit failed.
    pub fn bring_back(self) -> Step<'w, St, BringBack> {
        Step::new(self.asked.shared, BringBack(self.why))
    }

    /// Asks again, now that it is said why it does not matter that the window is lossy.
    ///
    /// # Errors
    /// The [`Denial`], for what else is missing.
    pub fn accept_lossy(mut self, accepted: AcceptLossy) -> Result<Permit<'w, A, St>, Self>
    where
        <A::State as Governed>::Policy: Permitted<AcceptLossy, A, A::State>,
    {
        self.asked.lossy = Some(accepted.0);
        self.asked.granted()
    }
}

impl<'w, A: Action, St> Withheld<'w, A, St, Attempt> {
    /// Puts on record what was found out about the attempt; then ask for the permit again.
    ///
    /// # Errors
    /// [`CommitError::Claimed`](crate::CommitError::Claimed) where it ended meanwhile; nothing was written then.
    pub fn settle(self, settlement: Settlement) -> Step<'w, St, Settle> {
        Step::new(self.asked.shared, Settle::of(&self.why, settlement))
    }
}

/// Brings back what a denial names; see [`Withheld::bring_back`]. Gives the spans' ids.
#[derive(Debug)]
pub struct BringBack(Denial);

impl<'w, St: 'w> Operation<'w, St> for BringBack {
    type Output = Vec<SpanId>;
    type Error = RestoreError;
    type Effect = <Restore as Operation<'w, St>>::Effect;

    fn plan(self, contents: &Contents, counter: &dyn TokenCounter) -> Result<Plan<Self::Effect>, RestoreError> {
        let spans = self.0.away();
        if spans.is_empty() {
            return Err(RestoreError::Nothing(self.0));
        }
        <Restore as Operation<'w, St>>::plan(Restore { lane: None, spans }, contents, counter)
    }

    fn apply(
        effect: Self::Effect,
        fetched: Vec<Vec<u8>>,
        contents: &mut Contents,
        shared: &'w Shared<St>,
    ) -> Vec<SpanId> {
        <Restore as Operation<'w, St>>::apply(effect, fetched, contents, shared)
    }
}
