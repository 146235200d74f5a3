//! What a window asks the gate, with its own numbers (rules R10, R11).

use super::Index;
use crate::{
    Certainty, Prices, TokenCounter,
    accounting::Note,
    gate::{Admitted, Ask, Held, Refused},
    tool::MAX_OFFERED,
    window::{
        candidates::Tally,
        contents::{Commit, Contents},
    },
};

impl Contents {
    /// What a request takes: the fixed part and the window.
    pub(crate) fn request(&self) -> u64 {
        self.budget.map_or(0, |budget| budget.fixed()).saturating_add(self.utilization)
    }

    /// The gate with expected prices. No allocation.
    pub(super) fn decide(&self) -> Result<Admitted, Refused> {
        let budget = self.budget.ok_or(Refused::NoBudget)?;
        if !self.trusts_estimates && self.certainty == Certainty::Estimate {
            return Err(Refused::Estimated { utilization: self.utilization });
        }
        if self.commit == Commit::Interrupted {
            return Err(Refused::Interrupted);
        }
        let prices = self.ledger.prices();
        let Prices { index, rationale, .. } = prices;
        if let Some(most) = self.max_decision.filter(|most| index.saturating_add(rationale) > *most) {
            return Err(Refused::AbovePolicy { index, rationale, most });
        }
        let room = Ask {
            utilization: self.request(),
            limit: budget.limit(),
            candidates: 0,
            gross: 0,
            index,
            rationale,
            pointers: 0,
            cache: 0,
            margin: budget.margin().max(rationale),
        };
        // Where there is no room to decide in, what there is to prune changes nothing.
        if let Err(refused @ (Refused::OverBudget { .. } | Refused::DecisionInBand { .. })) = room.decide() {
            return Err(refused);
        }
        let tally = self.tally();
        // No more lines than a tool definition takes, nor than fit the index.
        let most = budget.index().checked_div(self.line_price).unwrap_or(0).min(MOST);
        let (candidates, gross) = tally.largest(most);
        let ask = Ask {
            candidates,
            gross: taken(gross, prices.uptake),
            pointers: taken(candidates.saturating_mul(prices.pointer), prices.uptake),
            cache: self.cache_cost(tally.before),
            ..room
        };
        ask.decide().map_err(|refused| self.explained(refused, &tally))
    }

    /// Below the trigger a pass is a choice and pays for the cache it loses; above, the space is needed.
    pub(super) fn cache_cost(&self, before: Option<u64>) -> u64 {
        let due = self.budget.is_some_and(|budget| self.request() >= budget.trigger());
        match (self.cache, before) {
            (Some(price), Some(before)) if !due => price.tokens(self.utilization.saturating_sub(before)),
            _ => 0,
        }
    }

    /// The gate, then the index, then the gate again with what the index really is.
    pub(super) fn admit(&self, counter: &dyn TokenCounter) -> Result<(Admitted, Index), Refused> {
        let expected = self.decide()?;
        let budget = self.budget.ok_or(Refused::NoBudget)?;
        let prices = self.ledger.prices();
        let index =
            self.index(budget.index(), counter).map_err(|error| Refused::Uncounted { error: error.to_string() })?;
        let candidates = u64::try_from(index.offers.len()).unwrap_or(u64::MAX);
        let ask = Ask {
            candidates,
            gross: taken(index.gross(), prices.uptake),
            index: index.tokens,
            pointers: taken(candidates.saturating_mul(prices.pointer), prices.uptake),
            ..expected.ask
        };
        let admitted = ask.decide().map_err(|refused| self.explained(refused, &self.tally()))?;
        Ok((admitted, index))
    }

    /// Where there is nothing to prune, says why.
    fn explained(&self, refused: Refused, tally: &Tally) -> Refused {
        match refused {
            Refused::NothingToPrune { headroom, .. } => {
                // Whatever candidates there are had no line in the index.
                let unlisted = tally.largest(u64::MAX).1;
                let held = Held { unlisted, calls: self.open_calls(), ..tally.held.clone() };
                Refused::NothingToPrune { headroom, held }
            }
            other => other,
        }
    }

    /// Books what a decision took; `taken` of what was offered, where the answer was accepted.
    pub(super) fn decided(&mut self, index: &Index, written: u64, taken: Option<u64>) {
        let (at, utilization, offered) = (self.pushed_tokens, self.request(), index.gross());
        self.ledger.book(Note::Decided { at, utilization, index: index.tokens, rationale: written, taken, offered });
    }

    pub(super) fn refused(&mut self, refused: &Refused) -> u32 {
        let (at, utilization, changes) = (self.pushed_tokens, self.request(), self.changes);
        self.ledger.refused(at, utilization, changes, refused.reason())
    }
}

/// What of the offered tokens a model is expected to take.
fn taken(tokens: u64, uptake: u64) -> u64 {
    u64::try_from(u128::from(tokens).saturating_mul(u128::from(uptake)).div_euclid(1_000)).unwrap_or(u64::MAX)
}

const MOST: u64 = MAX_OFFERED as u64;
