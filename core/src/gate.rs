//! The gate: may a model decide now, at this price? (rules R10, R11)

use crate::OpenCall;

/// What a decision would cost and free, all in tokens. [`decide`](Ask::decide) is the whole gate; a window asks it with
/// its own numbers through [`Lanes::admit`](crate::Lanes::admit).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    /// What the request takes now, its fixed part included.
    pub utilization: u64,
    /// What the request may take: the budget without the part reserved for output.
    pub limit: u64,
    /// How many candidates there are.
    pub candidates: u64,
    /// What of the candidates is expected to leave: together, times the share that models took so far.
    pub gross: u64,
    /// What the model would read to decide.
    pub index: u64,
    /// What the model would write.
    pub rationale: u64,
    /// What the pointers left behind would take.
    pub pointers: u64,
    /// What losing the provider's cache costs, as tokens that must be freed to pay for it.
    pub cache: u64,
    /// What the net reclamation must exceed.
    pub margin: u64,
}

/// The numbers of an admitted pass, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// What was asked.
    pub ask: Ask,
    /// What is free now: the limit without the utilization.
    pub headroom: u64,
    /// What the pass frees beyond all it costs.
    pub net: u64,
}

/// Why a model may not decide now. Each asks for something else, and none is told by utilization alone (rule R10). The
/// first four are the gate's own; the others say why it could not be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The window is larger than the limit already.
    #[error(
        "over budget: the request takes {utilization} tokens and the limit is {limit}; no model can decide inside it: fall back"
    )]
    OverBudget {
        /// What the request takes.
        utilization: u64,
        /// What it may take.
        limit: u64,
    },
    /// Deciding takes more than is free.
    #[error(
        "decision in band: {headroom} tokens are free and deciding takes {} (index {index}, rationale {rationale}): fall back now, and prune earlier",
        index.saturating_add(*rationale)
    )]
    DecisionInBand {
        /// What is free.
        headroom: u64,
        /// What the model would read.
        index: u64,
        /// What it would write.
        rationale: u64,
    },
    /// The pass would not free enough beyond its own cost.
    #[error(
        "insufficient reclamation: {gross} tokens could leave, {} are spent on it (index {index}, rationale {rationale}, \
         pointers {pointers}, cache {cache}) and the margin is {margin}: wait until more is stale, or fall back",
        index.saturating_add(*rationale).saturating_add(*pointers).saturating_add(*cache)
    )]
    InsufficientReclamation {
        /// What of the candidates is expected to leave.
        gross: u64,
        /// What the model would read.
        index: u64,
        /// What it would write.
        rationale: u64,
        /// What the pointers would take.
        pointers: u64,
        /// What losing the provider's cache costs.
        cache: u64,
        /// What the net must exceed.
        margin: u64,
    },
    /// There is no candidate at all.
    #[error(
        "nothing to prune: {headroom} tokens are free and no span is a candidate ({held}): go on, or raise the budget"
    )]
    NothingToPrune {
        /// What is free.
        headroom: u64,
        /// Why the spans that are there are no candidates.
        held: Held,
    },
    /// The counts are estimates, and the episode does not trust them (rule R25).
    #[error(
        "the window's {utilization} tokens are an estimate, and a budget is not held by estimates: count exactly or by an upper bound \
         (`Window::open_with`), or say `Episode::trust_estimates`"
    )]
    Estimated {
        /// What the window takes, as estimated.
        utilization: u64,
    },
    /// As measured, deciding costs more than the struct's policy allows.
    #[error(
        "deciding is expected to take {} tokens (index {index}, rationale {rationale}) and the policy allows {most}: fall back, and ask \
         the model for a shorter reason",
        index.saturating_add(*rationale)
    )]
    AbovePolicy {
        /// What the model is expected to read.
        index: u64,
        /// What it is expected to write.
        rationale: u64,
        /// The most that both may be.
        most: u64,
    },
    /// There is no budget to hold.
    #[error("no budget: give one by `#[context(budget = ..)]` or `Episode::budget`; without one nothing must leave")]
    NoBudget,
    /// The gate admitted a pass, and no answer to it was applied.
    #[error(
        "declined: a pass was admitted and no answer to it was applied; fall back, or ask again while there is slack"
    )]
    Declined,
    /// The index that a model would read could not be counted.
    #[error("the candidates could not be counted: {error}; mend the counter, then ask again")]
    Uncounted {
        /// What the counter said.
        error: String,
    },
    /// An earlier commit was cancelled, so no pass could be applied.
    #[error(
        "an earlier step was cancelled or got no answer, so nothing could be applied: `Window::recover` asks the store and goes on"
    )]
    Interrupted,
}

/// Why spans of the window are no candidates, in tokens of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Instructions and pinned lanes: they never leave.
    pub kept: u64,
    /// Protected spans: no model is offered them (rule R15), a fallback takes them last.
    pub protected: u64,
    /// Rationales: only a fallback takes them (rule R13).
    pub rationales: u64,
    /// Exchanges whose results are not all there (rule R16).
    pub pending: u64,
    /// The newest tokens, kept by the budget's `keep`.
    pub recent: u64,
    /// Spans and exchanges no larger than the pointers that would stand for them.
    pub small: u64,
    /// Candidates for which the budget's `index` has no line: it is smaller than one.
    pub unlisted: u64,
    /// What the pending exchanges wait for, oldest first.
    pub calls: Vec<OpenCall>,
}

impl std::fmt::Display for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { kept, protected, rationales, pending, recent, small, unlisted, calls } = self;
        write!(
            f,
            "instructions and pinned {kept}, protected {protected}, rationales {rationales}, in pending exchanges {pending}, \
             recent {recent}, no larger than a pointer {small}, without room in the index {unlisted}"
        )?;
        for (at, call) in calls.iter().enumerate() {
            write!(f, "{} {call}", if at == 0 { "; pending:" } else { "," })?;
        }
        Ok(())
    }
}

impl Ask {
    /// Decides; O(1), no allocation. Without pointers, cache and an empty list of candidates it is the comparison
    /// `headroom < index + rationale`, then `gross - index - rationale <= margin`.
    ///
    /// # Errors
    /// One of the four: over budget, decision in band, nothing to prune, insufficient reclamation; in this order.
    pub const fn decide(&self) -> Result<Admitted, Refused> {
        let Self { utilization, limit, candidates, gross, index, rationale, pointers, cache, margin } = *self;
        let Some(headroom) = limit.checked_sub(utilization) else {
            return Err(Refused::OverBudget { utilization, limit });
        };
        let deciding = index.saturating_add(rationale);
        if headroom < deciding {
            return Err(Refused::DecisionInBand { headroom, index, rationale });
        }
        if candidates == 0 {
            let held = Held {
                kept: 0,
                protected: 0,
                rationales: 0,
                pending: 0,
                recent: 0,
                small: 0,
                unlisted: 0,
                calls: Vec::new(),
            };
            return Err(Refused::NothingToPrune { headroom, held });
        }
        let cost = deciding.saturating_add(pointers).saturating_add(cache);
        match gross.checked_sub(cost) {
            Some(net) if net > margin => Ok(Admitted { ask: *self, headroom, net }),
            _ => Err(Refused::InsufficientReclamation { gross, index, rationale, pointers, cache, margin }),
        }
    }
}

impl Refused {
    /// The reason alone, for counting: `over_budget`.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::OverBudget { .. } => "over_budget",
            Self::DecisionInBand { .. } => "decision_in_band",
            Self::InsufficientReclamation { .. } => "insufficient_reclamation",
            Self::NothingToPrune { .. } => "nothing_to_prune",
            Self::Estimated { .. } => "estimated",
            Self::AbovePolicy { .. } => "above_policy",
            Self::NoBudget => "no_budget",
            Self::Declined => "declined",
            Self::Uncounted { .. } => "uncounted",
            Self::Interrupted => "interrupted",
        }
    }

    /// A reason read back from a log, as [`reason`](Self::reason) gives it.
    pub(crate) fn named(reason: &str) -> &'static str {
        REASONS.iter().find(|known| **known == reason).copied().unwrap_or("unknown")
    }
}

/// Every [reason](Refused::reason).
const REASONS: [&str; 10] = [
    "over_budget",
    "decision_in_band",
    "insufficient_reclamation",
    "nothing_to_prune",
    "estimated",
    "above_policy",
    "no_budget",
    "declined",
    "uncounted",
    "interrupted",
];

/// What a changed prefix costs where the provider caches prompts: tokens after the first change are billed in full once,
/// where they would have been billed as cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachePrice {
    hit: u32,
    miss: u32,
    calls: u32,
}

/// Why a cache price makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a cached token at {hit}, a fresh one at {miss}, over {calls} calls: give prices above 0, the cached one no larger, and at least one call"
)]
pub struct CachePriceError {
    hit: u32,
    miss: u32,
    calls: u32,
}

impl CachePrice {
    /// The price of a cached and of a fresh input token, in any one currency, and the number of calls still to come over
    /// which a pass may pay for itself.
    ///
    /// # Errors
    /// When a price or the calls are 0, or a cached token costs more than a fresh one.
    pub const fn new(hit: u32, miss: u32, calls: u32) -> Result<Self, CachePriceError> {
        if hit == 0 || calls == 0 || hit > miss {
            return Err(CachePriceError { hit, miss, calls });
        }
        Ok(Self { hit, miss, calls })
    }

    /// The tokens that a pass must free so that what `rebilled` tokens cost more is saved by the end of the calls,
    /// rounded up.
    pub const fn tokens(&self, rebilled: u64) -> u64 {
        let more = rebilled.saturating_mul(self.miss.saturating_sub(self.hit) as u64);
        more.div_ceil((self.hit as u64).saturating_mul(self.calls as u64))
    }
}
