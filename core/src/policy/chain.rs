//! A policy with all that it stands under, and what of it is broken: the policies of a chain are held one by one.

use super::{PolicyError, Rules, Terms};
use crate::{Budget, ContextState, LaneSpec};

/// A policy's terms, and those above it.
#[doc(hidden)]
#[derive(Debug)]
pub struct Link {
    pub(super) terms: Terms,
    pub(super) under: Option<&'static Link>,
}

/// The first of the chain's policies that a lane breaks.
pub(super) const fn lane_fault(
    chain: Option<&Link>,
    state: &'static str,
    lanes: &[LaneSpec],
    lane: &LaneSpec,
) -> Option<PolicyError> {
    let mut chain = chain;
    while let Some(link) = chain {
        if let Some(error) = link.terms.lane(state, lanes, lane) {
            return Some(error);
        }
        chain = link.under;
    }
    None
}

/// The first of the chain's policies that the struct as a whole breaks, or that loosens another.
pub(super) const fn whole_fault(chain: Option<&Link>, state: &'static str, lanes: &[LaneSpec]) -> Option<PolicyError> {
    let mut chain = chain;
    while let Some(link) = chain {
        if let Some(error) = loosened(link) {
            return Some(error);
        }
        if let Some(error) = link.terms.absent(state, lanes) {
            return Some(error);
        }
        chain = link.under;
    }
    None
}

pub(super) const fn loosened(link: &Link) -> Option<PolicyError> {
    let mut above = link.under;
    while let Some(next) = above {
        if let Some(error) = link.terms.looser(&next.terms) {
            return Some(error);
        }
        above = next.under;
    }
    None
}

/// The first of the chain's policies that a budget breaks.
pub(super) const fn budget_fault(chain: Option<&Link>, state: &'static str, budget: Budget) -> Option<PolicyError> {
    let mut chain = chain;
    while let Some(link) = chain {
        if let Some(error) = link.terms.over(state, budget) {
            return Some(error);
        }
        chain = link.under;
    }
    None
}

/// Where an episode breaks the struct's policy. The struct itself was held to it when it was compiled, unless its
/// [`ContextState`] is hand-written.
pub(crate) fn fault<C: ContextState>(budget: Option<Budget>) -> Option<PolicyError> {
    let (chain, state, lanes) = (<C::Policy as Rules>::CHAIN, C::NAME, C::LANES);
    whole_fault(chain, state, lanes)
        .or_else(|| lanes.iter().find_map(|lane| lane_fault(chain, state, lanes, lane)))
        .or_else(|| match budget {
            Some(budget) => budget_fault(chain, state, budget),
            None => unbounded(chain, state),
        })
}

fn unbounded(chain: Option<&'static Link>, state: &'static str) -> Option<PolicyError> {
    let mut chain = std::iter::successors(chain, |link| link.under);
    chain.find_map(|Link { terms, .. }| {
        terms.budget.map(|most| PolicyError::Unbounded { state, policy: terms.name, most })
    })
}

/// The most that deciding a pass may cost, by all policies of the struct.
pub(crate) fn max_decision<C: ContextState>() -> Option<u64> {
    let chain = std::iter::successors(<C::Policy as Rules>::CHAIN, |link| link.under);
    chain.filter_map(|link| link.terms.decision).min()
}
