//! What a policy asks of a struct and of a budget.

use super::PolicyError;
use crate::{
    Budget, LaneSpec,
    kind::{self, Kind, KindId, Protected},
};

/// What a policy asks of a struct, beside the acts it permits.
///
/// ```
/// use keepspan::{
///     kind::{Constraint, Precondition, ScopeQualifier},
///     policy::Terms,
/// };
///
/// const TERMS: Terms = Terms::of("House")
///     .requires::<Precondition, ScopeQualifier>()
///     .always_pinned::<Constraint>()
///     .max_budget(100_000);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    pub(super) name: &'static str,
    /// The kinds that require another, and all pairs of them.
    requiring: Set,
    requires: Set,
    present: Set,
    pinned: Set,
    pub(super) budget: Option<u64>,
    pub(super) decision: Option<u64>,
}

impl Terms {
    /// Asks nothing yet; `name` is what messages call the policy.
    pub const fn of(name: &'static str) -> Self {
        let none = Set(0);
        Self { name, requiring: none, requires: none, present: none, pinned: none, budget: None, decision: None }
    }

    /// No field of the kind `K` without one of the kind `O`.
    #[must_use]
    pub const fn requires<K: Kind, O: Kind>(self) -> Self {
        let (requiring, requires) = (self.requiring.with(K::ID.number()), self.requires.with(pair(K::ID, O::ID)));
        Self { requiring, requires, ..self }
    }

    /// At least one field of the kind `K`.
    #[must_use]
    pub const fn present<K: Kind>(self) -> Self {
        Self { present: self.present.with(K::ID.number()), ..self }
    }

    /// Every field of the kind `K` is `pinned`.
    #[must_use]
    pub const fn always_pinned<K: Protected>(self) -> Self {
        Self { pinned: self.pinned.with(K::ID.number()), ..self }
    }

    /// The most that a budget may be, in tokens; a struct without a budget is refused when its window opens.
    #[must_use]
    pub const fn max_budget(self, tokens: u64) -> Self {
        Self { budget: Some(tokens), ..self }
    }

    /// The most that deciding a pass may cost, in tokens: index and rationale.
    #[must_use]
    pub const fn max_decision(self, tokens: u64) -> Self {
        Self { decision: Some(tokens), ..self }
    }

    pub(super) const fn lane(&self, state: &'static str, lanes: &[LaneSpec], lane: &LaneSpec) -> Option<PolicyError> {
        let (kind, field, policy) = (lane.kind(), lane.name(), self.name);
        if self.pinned.has(kind.number()) && !lane.pinned() {
            return Some(PolicyError::Unpinned { state, policy, field, kind });
        }
        // Most kinds require none, and this is evaluated for each lane in each build.
        let mut kinds: &[KindId] = if self.requiring.has(kind.number()) { kind::IDS } else { &[] };
        while let Some((needed, rest)) = kinds.split_first() {
            if self.requires.has(pair(kind, *needed)) && !holds(lanes, *needed) {
                return Some(PolicyError::Alone { state, policy, field, kind, needed: *needed });
            }
            kinds = rest;
        }
        None
    }

    pub(super) const fn absent(&self, state: &'static str, lanes: &[LaneSpec]) -> Option<PolicyError> {
        let mut kinds = kind::IDS;
        while let Some((kind, rest)) = kinds.split_first() {
            if self.present.has(kind.number()) && !holds(lanes, *kind) {
                return Some(PolicyError::Absent { state, policy: self.name, kind: *kind });
            }
            kinds = rest;
        }
        None
    }

    pub(super) const fn over(&self, state: &'static str, budget: Budget) -> Option<PolicyError> {
        let policy = self.name;
        if let Some(most) = self.budget
            && budget.tokens() > most
        {
            return Some(PolicyError::Budget { state, policy, budget: budget.tokens(), most });
        }
        if let Some(most) = self.decision
            && budget.decision() > most
        {
            let (index, rationale) = (budget.index(), budget.rationale());
            return Some(PolicyError::Decision { state, policy, index, rationale, most });
        }
        None
    }

    /// Where it allows more than `above`, a policy that it stands under.
    pub(super) const fn looser(&self, above: &Self) -> Option<PolicyError> {
        let (policy, under) = (self.name, above.name);
        match (self.budget, above.budget) {
            (Some(tokens), Some(most)) if tokens > most => {
                return Some(PolicyError::Looser { policy, under, key: "max_budget", tokens, most });
            }
            _ => {}
        }
        match (self.decision, above.decision) {
            (Some(tokens), Some(most)) if tokens > most => {
                Some(PolicyError::Looser { policy, under, key: "max_decision", tokens, most })
            }
            _ => None,
        }
    }
}

/// Numbers below 128: kinds, or pairs of them.
#[derive(Clone, Copy, Debug)]
struct Set(u128);

impl Set {
    const fn with(self, number: u32) -> Self {
        Self(self.0 | bit(number))
    }

    const fn has(self, number: u32) -> bool {
        self.0 & bit(number) != 0
    }
}

const fn bit(number: u32) -> u128 {
    1_u128.wrapping_shl(number)
}

/// Nine kinds make 81 pairs.
const fn pair(kind: KindId, other: KindId) -> u32 {
    kind.number().saturating_mul(9).saturating_add(other.number())
}

const fn holds(lanes: &[LaneSpec], kind: KindId) -> bool {
    let mut lanes = lanes;
    while let Some((lane, rest)) = lanes.split_first() {
        if lane.kind().number() == kind.number() {
            return true;
        }
        lanes = rest;
    }
    false
}
