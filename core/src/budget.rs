//! Token budgets: what a request may take, and when pruning it pays. A budget that cannot work is none (rule R12).

use crate::text::Text;

/// What a developer declares of a budget, in tokens. What is not set follows from the limit, and nothing is clamped.
///
/// ```
/// use keepspan::{Budget, Limits};
///
/// let budget = Budget::new(Limits::of(24_000).fixed(1_200))?;
/// assert_eq!((budget.index(), budget.rationale(), budget.margin(), budget.trigger()), (600, 400, 600, 20_000));
/// # Ok::<(), keepspan::BudgetError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    tokens: u64,
    fixed: Option<u64>,
    trigger: Option<u64>,
    index: Option<u64>,
    rationale: Option<u64>,
    margin: Option<u64>,
    reserve: Option<u64>,
    keep: Option<u64>,
}

macro_rules! setters {
    ($($(#[$doc:meta])* $key:ident,)*) => {
        $(
            $(#[$doc])*
            #[must_use]
            pub const fn $key(self, tokens: u64) -> Self {
                Self { $key: Some(tokens), ..self }
            }
        )*
    };
}

impl Limits {
    /// The tokens that a request may take in all, with the output it asks for.
    pub const fn of(tokens: u64) -> Self {
        Self {
            tokens,
            fixed: None,
            trigger: None,
            index: None,
            rationale: None,
            margin: None,
            reserve: None,
            keep: None,
        }
    }

    setters! {
        /// What is in every request and no pruning removes: system prompt, tool definitions. Default: 0.
        fixed,
        /// The utilization, fixed part included, from which pruning is due. Default: five sixths of the limit.
        trigger,
        /// What the deciding model is expected to read in a pass. Default: a fortieth of the limit, rounded up.
        index,
        /// What the deciding model is expected to write in a pass. Default: a sixtieth of the limit, rounded up.
        rationale,
        /// What a pass must reclaim more than, net. Default: one and a half times the rationale, rounded up.
        margin,
        /// What is kept free for the model's output. Default: 0.
        reserve,
        /// The newest tokens, which are never candidates. Default: 0.
        keep,
    }
}

impl Limits {
    /// The key to blame when deciding costs too much.
    pub(crate) const fn decision_key(&self) -> &'static str {
        match (self.index, self.rationale) {
            (Some(_), _) => "index",
            (None, Some(_)) => "rationale",
            (None, None) => "budget",
        }
    }
}

impl From<u64> for Limits {
    fn from(tokens: u64) -> Self {
        Self::of(tokens)
    }
}

/// A budget that can work, in tokens: [`new`](Self::new) is the only way to make one (rule R12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    tokens: u64,
    fixed: u64,
    trigger: u64,
    index: u64,
    rationale: u64,
    margin: u64,
    reserve: u64,
    keep: u64,
}

impl Budget {
    /// Takes what is declared and derives the rest.
    ///
    /// # Errors
    /// [`BudgetError`]: no pass could be decided, or could help, within these numbers.
    pub const fn new(limits: Limits) -> Result<Self, BudgetError> {
        let budget = limits.tokens;
        if budget == 0 {
            return Err(BudgetError::Empty);
        }
        let reserve = or(limits.reserve, 0);
        let limit = match budget.checked_sub(reserve) {
            None | Some(0) => return Err(BudgetError::AllReserved { reserve, budget }),
            Some(limit) => limit,
        };
        let (fixed, keep) = (or(limits.fixed, 0), or(limits.keep, 0));
        if fixed >= limit {
            return Err(BudgetError::AllFixed { fixed, limit });
        }
        if keep > budget {
            return Err(BudgetError::KeepAboveBudget { keep, budget });
        }
        // Five sixths, rounded down.
        let trigger = or(limits.trigger, limit.saturating_sub(limit.div_ceil(6)));
        let Some(headroom) = limit.checked_sub(trigger) else {
            return Err(BudgetError::TriggerAboveLimit { trigger, limit });
        };
        let (index, rationale) = (or(limits.index, limit.div_ceil(40)), or(limits.rationale, limit.div_ceil(60)));
        match headroom.checked_sub(index) {
            Some(left) if left >= rationale => {}
            _ => return Err(BudgetError::DecisionInBand { trigger, limit, index, rationale }),
        }
        if fixed >= trigger {
            return Err(BudgetError::FixedReachesTrigger { fixed, trigger });
        }
        match trigger.checked_sub(fixed) {
            Some(room) if keep < room => {}
            _ => return Err(BudgetError::KeepReachesTrigger { keep, fixed, trigger }),
        }
        // The rationale is at most the headroom by now, yet half as much again may be more than a u64 holds.
        let margin = or(limits.margin, rationale.saturating_add(rationale.div_ceil(2)));
        if margin < rationale {
            return Err(BudgetError::MarginBelowRationale { margin, rationale });
        }
        // The decision is free space before the pass, and a cost of it.
        let most = limit
            .saturating_sub(fixed)
            .saturating_sub(keep)
            .saturating_sub(index.saturating_add(rationale).saturating_mul(2));
        if margin >= most {
            return Err(BudgetError::MarginOutOfReach { margin, most });
        }
        Ok(Self { tokens: budget, fixed, trigger, index, rationale, margin, reserve, keep })
    }

    /// The whole: what a request may take in all.
    pub const fn tokens(self) -> u64 {
        self.tokens
    }

    /// What is in every request and no pruning removes.
    pub const fn fixed(self) -> u64 {
        self.fixed
    }

    /// The utilization, fixed part included, from which pruning is due.
    pub const fn trigger(self) -> u64 {
        self.trigger
    }

    /// What the deciding model is expected to read in a pass.
    pub const fn index(self) -> u64 {
        self.index
    }

    /// What the deciding model is expected to write in a pass.
    pub const fn rationale(self) -> u64 {
        self.rationale
    }

    /// What a pass must reclaim more than, net.
    pub const fn margin(self) -> u64 {
        self.margin
    }

    /// What is kept free for the model's output.
    pub const fn reserve(self) -> u64 {
        self.reserve
    }

    /// The newest tokens, which are never candidates.
    pub const fn keep(self) -> u64 {
        self.keep
    }

    /// What the fixed part and the spans may take together: the whole less the reserve.
    pub const fn limit(self) -> u64 {
        self.tokens.saturating_sub(self.reserve)
    }

    /// What the spans may take: the limit less the fixed part.
    pub const fn room(self) -> u64 {
        self.limit().saturating_sub(self.fixed)
    }

    /// What deciding costs: index and rationale.
    pub const fn decision(self) -> u64 {
        self.index.saturating_add(self.rationale)
    }
}

const fn or(given: Option<u64>, default: u64) -> u64 {
    match given {
        Some(given) => given,
        None => default,
    }
}

/// Why a budget cannot work (rule R12). All numbers are tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
#[non_exhaustive]
pub enum BudgetError {
    /// A budget of no tokens.
    Empty,
    /// The reserve leaves nothing.
    AllReserved {
        /// What is kept for the output.
        reserve: u64,
        /// The whole.
        budget: u64,
    },
    /// The fixed part leaves no room for a span.
    AllFixed {
        /// What no pruning removes.
        fixed: u64,
        /// The budget less the reserve.
        limit: u64,
    },
    /// More is never a candidate than there can be.
    KeepAboveBudget {
        /// The newest tokens, which are never candidates.
        keep: u64,
        /// The whole.
        budget: u64,
    },
    /// Pruning would never be due.
    TriggerAboveLimit {
        /// From where pruning is due.
        trigger: u64,
        /// The budget less the reserve.
        limit: u64,
    },
    /// Between trigger and limit there is no room for the decision.
    DecisionInBand {
        /// From where pruning is due.
        trigger: u64,
        /// The budget less the reserve.
        limit: u64,
        /// What deciding reads.
        index: u64,
        /// What deciding writes.
        rationale: u64,
    },
    /// Pruning would always be due.
    FixedReachesTrigger {
        /// What no pruning removes.
        fixed: u64,
        /// From where pruning is due.
        trigger: u64,
    },
    /// No pass could get below the trigger.
    KeepReachesTrigger {
        /// The newest tokens, which are never candidates.
        keep: u64,
        /// What no pruning removes.
        fixed: u64,
        /// From where pruning is due.
        trigger: u64,
    },
    /// A pass could write more than it reclaims.
    MarginBelowRationale {
        /// What a pass must reclaim more than.
        margin: u64,
        /// What deciding writes.
        rationale: u64,
    },
    /// No pass could reclaim enough.
    MarginOutOfReach {
        /// What a pass must reclaim more than.
        margin: u64,
        /// What it can reclaim at most, when all but the fixed part and `keep` leaves and the decision is paid.
        most: u64,
    },
}

impl BudgetError {
    /// The key whose value is at fault, of those that are given.
    pub(crate) const fn key(&self, limits: &Limits) -> &'static str {
        match self {
            Self::Empty => "budget",
            Self::AllReserved { .. } => "reserve",
            Self::AllFixed { .. } => "fixed",
            Self::KeepAboveBudget { .. } | Self::KeepReachesTrigger { .. } => "keep",
            Self::TriggerAboveLimit { .. } => "trigger",
            Self::MarginBelowRationale { .. } => "margin",
            Self::MarginOutOfReach { .. } => {
                match (limits.margin, limits.index, limits.rationale, limits.keep, limits.fixed) {
                    (Some(_), ..) => "margin",
                    (_, None, None, Some(_), _) => "keep",
                    (_, None, None, None, Some(_)) => "fixed",
                    _ => limits.decision_key(),
                }
            }
            Self::FixedReachesTrigger { .. } if limits.fixed.is_some() => "fixed",
            Self::DecisionInBand { .. } | Self::FixedReachesTrigger { .. } if limits.trigger.is_some() => "trigger",
            Self::DecisionInBand { .. } => limits.decision_key(),
            Self::FixedReachesTrigger { .. } => "budget",
        }
    }

    /// The message, at run time and in a failed build alike.
    pub(crate) const fn text(&self) -> Text {
        let text = Text::new();
        match *self {
            Self::Empty => text.and("budget 0 holds nothing: give the tokens that a request may take"),
            Self::AllReserved { reserve, budget } => text
                .and("reserve ")
                .number(reserve)
                .and(" leaves nothing of the budget ")
                .number(budget)
                .and(" for a request: lower the reserve, or raise the budget"),
            Self::AllFixed { fixed, limit } => text
                .and("fixed ")
                .number(fixed)
                .and(" leaves no span any room in the limit ")
                .number(limit)
                .and(": send a shorter prompt or fewer tools, or raise the budget"),
            Self::KeepAboveBudget { keep, budget } => text
                .and("keep ")
                .number(keep)
                .and(" is more than the whole budget ")
                .number(budget)
                .and(", so no span would ever be a candidate: lower keep"),
            Self::TriggerAboveLimit { trigger, limit } => text
                .and("trigger ")
                .number(trigger)
                .and(" is above the limit ")
                .number(limit)
                .and(" (budget less reserve), so pruning would never be due: lower the trigger"),
            Self::DecisionInBand { trigger, limit, index, rationale } => {
                let (headroom, decision) = (limit.saturating_sub(trigger), index.saturating_add(rationale));
                let text = text
                    .and("trigger ")
                    .number(trigger)
                    .and(" leaves ")
                    .number(headroom)
                    .and(if headroom == 1 { " token" } else { " tokens" })
                    .and(" of the limit ")
                    .number(limit)
                    .and(", and deciding costs ")
                    .number(decision)
                    .and(" (index ")
                    .number(index)
                    .and(" + rationale ")
                    .number(rationale)
                    .and("): ");
                match limit.checked_sub(decision) {
                    None | Some(0) => text.and("let the decision read and write less, or raise the budget"),
                    Some(most) => {
                        text.and("lower the trigger to ").number(most).and(", or let the decision read and write less")
                    }
                }
            }
            Self::FixedReachesTrigger { fixed, trigger } => text
                .and("fixed ")
                .number(fixed)
                .and(" reaches the trigger ")
                .number(trigger)
                .and(", so pruning would always be due: raise the trigger, or lower the fixed part"),
            Self::KeepReachesTrigger { keep, fixed, trigger } => text
                .and("keep ")
                .number(keep)
                .and(" and fixed ")
                .number(fixed)
                .and(" reach the trigger ")
                .number(trigger)
                .and(", so no pass could get below it: lower keep below ")
                .number(trigger.saturating_sub(fixed)),
            Self::MarginOutOfReach { margin, most } => text
                .and("margin ")
                .number(margin)
                .and(" is not below the ")
                .number(most)
                .and(" that a pass could reclaim at most (the limit less fixed, keep and twice the decision), so none would be admitted: lower these, or raise the budget"),
            Self::MarginBelowRationale { margin, rationale } => text
                .and("margin ")
                .number(margin)
                .and(" is below the rationale ")
                .number(rationale)
                .and(", so a pass could write more than it reclaims: raise the margin to ")
                .number(rationale),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Any limits, from numbers at which something changes.
    fn limits(seed: u64) -> Limits {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let numbers = [0, 1, 2, 39, 41, 300, 666, 667, 800, 1_000, u64::MAX / 2, u64::MAX - 1, u64::MAX];
            let chosen = usize::try_from(state >> 40).unwrap_or_default();
            numbers.get(chosen % 26).copied()
        };
        Limits {
            tokens: next().unwrap_or(1_000),
            fixed: next(),
            trigger: next(),
            index: next(),
            rationale: next(),
            margin: next(),
            reserve: next(),
            keep: next(),
        }
    }

    #[test]
    fn the_key_to_blame_is_one_that_is_given() {
        let mut blamed = std::collections::BTreeSet::new();
        for limits in (0..50_000).map(limits) {
            let Err(error) = Budget::new(limits) else { continue };
            let key = error.key(&limits);
            let given = match key {
                "fixed" => limits.fixed.is_some(),
                "trigger" => limits.trigger.is_some(),
                "index" => limits.index.is_some(),
                "rationale" => limits.rationale.is_some(),
                "margin" => limits.margin.is_some(),
                "reserve" => limits.reserve.is_some(),
                "keep" => limits.keep.is_some(),
                key => key == "budget",
            };
            assert!(given, "{limits:?} blames {key}: {error}");
            blamed.insert(key);
        }
        assert_eq!(blamed.len(), 8, "{blamed:?}");
    }
}
