//! What the code of the derive and of `policy!` calls while it is compiled. Each call that can fail is at the token of the
//! user's that it is about; what they share is worked out once a struct, since nearly all of them find no fault.

use super::{
    Governed, PolicyError, Rules,
    chain::{Link, budget_fault, lane_fault, loosened, whole_fault},
    error::state_text,
};
use crate::{
    Budget, BudgetError, LaneSpec, Limits,
    text::{Text, same},
};

/// A struct's lanes and its policy.
#[derive(Debug)]
pub struct HeldLanes {
    chain: Option<&'static Link>,
    state: &'static str,
    lanes: &'static [LaneSpec],
    /// Whether a lane is at fault.
    fault: bool,
}

impl HeldLanes {
    /// Goes through all lanes.
    pub const fn of<C: Governed>(state: &'static str, lanes: &'static [LaneSpec]) -> Self {
        let chain = <C::Policy as Rules>::CHAIN;
        let mut left = lanes;
        let mut fault = false;
        while let Some((lane, rest)) = left.split_first() {
            fault = fault || lane_fault(chain, state, lanes, lane).is_some();
            left = rest;
        }
        Self { chain, state, lanes, fault }
    }

    /// Fails where the struct as a whole breaks its policy.
    #[track_caller]
    pub const fn whole(&self) {
        if let Some(error) = whole_fault(self.chain, self.state, self.lanes) {
            fail(&error.text())
        }
    }

    /// Fails where the lane with the number `at` breaks the policy.
    #[track_caller]
    pub const fn lane(&self, at: u16) {
        if self.fault
            && let Some((_, rest)) = self.lanes.split_at_checked(at as usize)
            && let Some(lane) = rest.first()
            && let Some(error) = lane_fault(self.chain, self.state, self.lanes, lane)
        {
            fail(&error.text())
        }
    }
}

/// A struct's budget and its policy.
#[derive(Debug)]
pub struct HeldBudget {
    state: &'static str,
    limits: Limits,
    budget: Result<Budget, BudgetError>,
    over: Option<PolicyError>,
}

impl HeldBudget {
    /// Makes the budget.
    pub const fn of<C: Governed>(state: &'static str, limits: Limits) -> Self {
        let budget = Budget::new(limits);
        let over = match budget {
            Ok(budget) => budget_fault(<C::Policy as Rules>::CHAIN, state, budget),
            Err(_) => None,
        };
        Self { state, limits, budget, over }
    }

    /// Fails where the value of `key` makes the budget impossible, or more than the policy allows.
    #[track_caller]
    pub const fn key(&self, key: &str) {
        match (&self.budget, &self.over) {
            (Err(error), _) if same(error.key(&self.limits), key) => {
                fail(&state_text(self.state).and("`: ").and(error.text().as_str()))
            }
            (Ok(_), Some(error)) if same(error.key(&self.limits), key) => fail(&error.text()),
            _ => {}
        }
    }

    /// [`ContextState::BUDGET`].
    pub const fn budget(&self) -> Built {
        match self.budget {
            Ok(budget) => Some(budget),
            Err(error) => fail(&error.text()),
        }
    }
}

/// The type of [`ContextState::BUDGET`](crate::ContextState::BUDGET).
pub type Built = Option<Budget>;
/// No budget.
pub const NONE: Built = None;

/// Fails where the value of `key` loosens a policy that `P` stands under.
#[track_caller]
pub const fn tightens<P: Rules>(key: &str) {
    if let Some(link) = P::CHAIN
        && let Some(error) = loosened(link)
        && let PolicyError::Looser { key: at, .. } = error
        && same(at, key)
    {
        fail(&error.text())
    }
}

#[track_caller]
#[expect(clippy::panic, reason = "evaluated in a constant, where a panic is a compile error")]
const fn fail(text: &Text) -> ! {
    panic!("{}", text.as_str())
}
