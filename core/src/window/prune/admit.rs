//! The gate of a window: advice, a pass, or a refusal that can fall back (rules R9 to R11).

use std::{fmt, marker::PhantomData};

use super::{FallBack, Fallback, Pass};
use crate::{
    ContextState, Step,
    gate::{Admitted, Refused},
    policy::Permitted,
    rule::PrunesFrom,
    window::{Lanes, Shared},
};

/// What to do about the size of a window now; see [`Lanes::advice`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Advice {
    /// Nothing: below the trigger, or without a budget, and the gate would refuse.
    GoOn(Refused),
    /// A pass is affordable and would free enough, but the window is far from the trigger: waiting costs nothing, and more
    /// comes together for one decision.
    MayPrune(Admitted),
    /// The best moment: a pass is affordable and would free enough, and the trigger is reached, or will be once a rationale
    /// is written.
    Prune(Admitted),
    /// At or above the trigger, and no model may decide: fall back.
    FallBack(Refused),
}

impl<'w, C: ContextState + 'w, St, S> Lanes<'w, C, St, S> {
    /// Asks the gate whether a model may decide now (rules R9, R10). O(resident spans).
    ///
    /// # Errors
    /// A [`Refusal`] with the numbers; it can [fall back](Refusal::fall_back). It holds the window, so `?` cannot pass it on:
    /// match it, or pass on its [reason](Refusal::reason).
    pub fn admit(self) -> Result<Pass<'w, C, St>, Refusal<'w, C, St>>
    where
        S: PrunesFrom<C>, // externalized first
    {
        let shared = self.shared;
        let mut contents = shared.lock();
        let admitted = contents.admit(&*shared.counter);
        match admitted {
            Ok((admitted, index)) => {
                contents.line_price = index.price_of_a_line().unwrap_or(contents.line_price);
                Ok(Pass { shared, admitted, index, state: PhantomData })
            }
            Err(refused) => {
                let times = contents.refused(&refused);
                drop(contents);
                Err(Refusal { shared, refused, times, state: PhantomData })
            }
        }
    }

    /// What to do about the window's size, without asking for a pass. How many candidates there is room for is judged by the
    /// list that was made last, or the usual one. O(resident spans), no allocation.
    pub fn advice(&self) -> Advice {
        let contents = self.shared.lock();
        let request = contents.request();
        // What a decision leaves in the window in any case.
        let decided = request.saturating_add(contents.ledger.prices().rationale);
        let reaches = |tokens: u64| contents.budget.is_some_and(|budget| tokens >= budget.trigger());
        match contents.decide() {
            Ok(admitted) if reaches(decided) => Advice::Prune(admitted),
            Ok(admitted) => Advice::MayPrune(admitted),
            Err(refused) if reaches(request) => Advice::FallBack(refused),
            Err(refused) => Advice::GoOn(refused),
        }
    }
}

/// The gate's no, with the permit to free space without a model (rule R14).
#[must_use = "a refused window still has to be freed: fall back, or go on"]
pub struct Refusal<'w, C, St> {
    shared: &'w Shared<St>,
    refused: Refused,
    times: u32,
    state: PhantomData<fn() -> C>,
}

impl<'w, C: ContextState + 'w, St> Refusal<'w, C, St> {
    /// Why, with the numbers.
    pub fn reason(&self) -> &Refused {
        &self.refused
    }

    /// The reason alone, which is an error like any other: for `?`.
    pub fn into_reason(self) -> Refused {
        self.refused
    }

    /// How often this same refusal came by now while nothing changed in the window: above 1, asking again is a loop.
    pub fn times(&self) -> u32 {
        self.times
    }

    /// Frees space without a model, down to the trigger: evictable lanes first, then rationales, then summaries; and, only
    /// to get below the limit, protected lanes that are not pinned. Instructions never leave (rule R14).
    ///
    /// # Errors
    /// [`FallBackError`](crate::FallBackError): above all `Unfittable`, when what may not leave is larger than the limit.
    pub fn fall_back<B: Fallback>(self, _strategy: B) -> Step<'w, St, FallBack<B>>
    where
        C::Policy: Permitted<B, C, C>,
    {
        Step::new(self.shared, FallBack { refused: self.refused, strategy: PhantomData })
    }
}

impl<C: ContextState, St> fmt::Debug for Refusal<'_, C, St> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refusal").field("state", &C::NAME).field("refused", &self.refused).finish_non_exhaustive()
    }
}

impl<C, St> fmt::Display for Refusal<'_, C, St> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.refused.fmt(f)
    }
}
