//! Without a model: a fixed order frees the space when none may decide (rule R14).

use std::{cmp::Reverse, collections::HashMap, marker::PhantomData};

use super::{Proposal, Report};
use crate::{
    ApplyError, FallBackError, Origin, SpanId, TokenCounter,
    accounting::PassRecord,
    gate::Refused,
    policy::Act,
    record::Event,
    window::{
        Operation, Shared,
        candidates::{Class, Standing, Unit},
        contents::Contents,
        prune::apply::Change,
        step::Plan,
        summarize::{self, SummaryText},
    },
};

mod sealed {
    pub trait Sealed {}
}

/// In which order a fallback takes spans of the same class; see [`Refusal::fall_back`](super::Refusal::fall_back).
pub trait Fallback: sealed::Sealed + Act + Send + 'static {
    /// Its name in reports: `oldest_first`.
    const NAME: &'static str;
    /// Whether evictable spans leave behind one summary by a fixed template, and no pointers.
    #[doc(hidden)]
    const TEMPLATE: bool = false;
    #[doc(hidden)]
    fn rank(contents: &Contents) -> impl Fn(&Unit) -> Rank;
}

/// Smaller leaves first.
#[doc(hidden)]
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank(bool, Reverse<u64>, SpanId);

/// Takes the oldest spans first.
#[derive(Clone, Copy, Debug, Default)]
pub struct OldestFirst;

/// Takes the largest results of tools first, then the oldest spans.
#[derive(Clone, Copy, Debug, Default)]
pub struct LargestToolOutput;

/// Takes first what a later span repeats: reads of a subject that was read again ([`NewSpan::reads`](crate::NewSpan::reads)),
/// and results that a later one of the same tool equals byte for byte; then the oldest spans.
#[derive(Clone, Copy, Debug, Default)]
pub struct SupersededReads;

/// Takes the oldest spans first and leaves one summary of the evictable ones in the `#[derived]` lane, written by a fixed
/// template: one line a span with its id, tool, tokens and first words. Pointers, where that frees too little.
#[derive(Clone, Copy, Debug, Default)]
pub struct FixedTemplate;

impl sealed::Sealed for OldestFirst {}
impl Fallback for OldestFirst {
    const NAME: &'static str = "oldest_first";
    fn rank(_: &Contents) -> impl Fn(&Unit) -> Rank {
        |unit| Rank(false, Reverse(0), unit.span)
    }
}

impl sealed::Sealed for LargestToolOutput {}
impl Fallback for LargestToolOutput {
    const NAME: &'static str = "largest_tool_output";
    fn rank(contents: &Contents) -> impl Fn(&Unit) -> Rank {
        |unit| {
            let tool = contents.unit(unit.span).any(|(_, entry)| entry.origin == Origin::Tool);
            Rank(!tool, Reverse(if tool { unit.tokens } else { 0 }), unit.span)
        }
    }
}

impl sealed::Sealed for SupersededReads {}
impl Fallback for SupersededReads {
    const NAME: &'static str = "superseded_reads";
    fn rank(contents: &Contents) -> impl Fn(&Unit) -> Rank {
        let mut last = HashMap::new();
        for (span, entry) in contents.table.resident().filter(|(_, entry)| entry.origin == Origin::Tool) {
            last.insert((entry.name, entry.digest), span);
        }
        move |unit| {
            let repeated = |span, entry: &crate::window::table::Entry| {
                contents.reads.is_superseded(span)
                    || entry.origin == Origin::Tool
                        && last.get(&(entry.name, entry.digest)).is_some_and(|last| *last > span)
            };
            let superseded = contents.unit(unit.span).any(|(span, entry)| repeated(span, entry));
            Rank(!superseded, Reverse(0), unit.span)
        }
    }
}

impl sealed::Sealed for FixedTemplate {}
impl Fallback for FixedTemplate {
    const NAME: &'static str = "fixed_template";
    const TEMPLATE: bool = true;
    fn rank(_: &Contents) -> impl Fn(&Unit) -> Rank {
        |unit| Rank(false, Reverse(0), unit.span)
    }
}

/// Frees space without a model; see [`Refusal::fall_back`](super::Refusal::fall_back). Gives what it [came to](FellBack).
#[derive(Debug)]
pub struct FallBack<B> {
    pub(super) refused: Refused,
    pub(super) strategy: PhantomData<B>,
}

/// What a fallback came to.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "an unchanged window is as full as before"]
#[non_exhaustive]
pub enum FellBack {
    /// Nothing had to leave, or nothing that may leave is left: nothing was written.
    Unchanged,
    /// As the last time, and nothing changed since: asking again and again is a loop. Push, raise the budget, or stop.
    NoProgress {
        /// What the gate said.
        refused: Refused,
    },
    /// Spans left, in this order: no more than needed.
    Freed(Report),
}

#[doc(hidden)]
#[derive(Debug)]
pub enum Freeing {
    Nothing(Refused),
    Change(Box<(Change, PassRecord)>),
}

impl<'w, St, B: Fallback> Operation<'w, St> for FallBack<B> {
    type Output = FellBack;
    type Error = FallBackError;
    type Effect = Freeing;
    const BLOBS_FIRST: bool = true;

    fn plan(self, contents: &Contents, counter: &dyn TokenCounter) -> Result<Plan<Freeing>, FallBackError> {
        let Some(chosen) = contents.choose::<B>(counter)? else {
            return Ok(Plan::new(Freeing::Nothing(self.refused)));
        };
        let change = contents.change(chosen, counter)?;
        let pass = change.pass(contents);
        let first = Event::FellBack { strategy: B::NAME.into(), pass: pass.clone() };
        let events = contents.events(first, &change);
        Ok(Plan { blobs: change.blobs(), events, ..Plan::new(Freeing::Change(Box::new((change, pass)))) })
    }

    fn apply(effect: Freeing, _: Vec<Vec<u8>>, contents: &mut Contents, _: &'w Shared<St>) -> FellBack {
        match effect {
            Freeing::Nothing(refused) if contents.ledger.idle(contents.changes) => FellBack::NoProgress { refused },
            Freeing::Nothing(_) => FellBack::Unchanged,
            Freeing::Change(change) => {
                let (change, pass) = *change;
                contents.ledger.fell_back(B::NAME, &pass);
                FellBack::Freed(contents.carry_out(change, pass))
            }
        }
    }
}

/// How far a fallback got with the first so many units.
struct Reached {
    units: usize,
    taken: Proposal,
    after: u64,
}

impl Contents {
    /// What leaves: the fewest units, in order, that bring the request below the trigger; with protected lanes only as
    /// far as the limit asks. `None` when nothing has to, or nothing can.
    fn choose<B: Fallback>(&self, counter: &dyn TokenCounter) -> Result<Option<Proposal>, FallBackError> {
        let budget = self.budget.ok_or(FallBackError::NoBudget)?;
        let (before, limit, goal) = (self.request(), budget.limit(), budget.trigger().saturating_sub(1));
        if B::TEMPLATE && self.derived_lane().is_none() {
            return Err(FallBackError::NoDerivedLane);
        }
        if before <= goal {
            return Ok(None);
        }
        let soft = |units: &[Unit]| 0..units.partition_point(|unit| unit.class < Class::Protected);
        let (mut units, mut template) = (self.in_order::<B>(self.least), B::TEMPLATE);
        let mut reached = self.fewest(&units, soft(&units), goal, template, counter)?;
        // Small ones too, since a thousand neighbours fold into one pointer; then without the template.
        for other in [true, false].into_iter().filter(|other| B::TEMPLATE || !other) {
            if reached.after > goal {
                let all = self.in_order::<B>(0);
                let further = self.fewest(&all, soft(&all), goal, other, counter)?;
                if further.after < reached.after {
                    (units, template, reached) = (all, other, further);
                }
            }
        }
        if reached.after > limit {
            reached = self.fewest(&units, soft(&units).end..units.len(), limit, template, counter)?;
        }
        if reached.after > limit {
            return Err(self.unfittable(reached.after, limit));
        }
        Ok(Some(reached.taken).filter(|taken| !taken.is_empty() && reached.after < before))
    }

    /// The units that may leave without a model, in the order in which they do: of what folds, all above `least` tokens.
    fn in_order<B: Fallback>(&self, least: u64) -> Vec<Unit> {
        let least = |class| if class == Class::Evictable { least } else { self.least };
        let leaves = |unit: &Unit| {
            unit.class < Class::Kept && unit.standing == Standing::Free && unit.tokens > least(unit.class)
        };
        let mut units: Vec<_> = self.units().filter(leaves).collect();
        let rank = B::rank(self);
        units.sort_by_cached_key(|unit| (unit.class, rank(unit)));
        units
    }

    /// The fewest leading units, more than `among.start`, that bring the request to `goal`; all of `among` when none do.
    /// A guess by the prices, then doubled steps and halves: O(units taken · log).
    fn fewest(
        &self,
        units: &[Unit],
        among: std::ops::Range<usize>,
        goal: u64,
        template: bool,
        counter: &dyn TokenCounter,
    ) -> Result<Reached, FallBackError> {
        let try_out = |count: usize| -> Result<Reached, FallBackError> {
            let (taken, after) = self.taking(units.get(..count).unwrap_or_default(), template, counter)?;
            Ok(Reached { units: count, taken, after })
        };
        if among.is_empty() {
            return try_out(among.end);
        }
        let (mut fails, mut found) = (among.start, None::<Reached>);
        let (mut at, mut stride) = (self.guess(units, goal).clamp(among.start.saturating_add(1), among.end), 1);
        loop {
            let reached = try_out(at)?;
            if reached.after > goal {
                fails = at;
                if at >= among.end {
                    return Ok(reached);
                }
            } else {
                found = Some(reached);
            }
            let next = match &found {
                Some(found) if found.units <= fails.saturating_add(1) => break,
                Some(found) if fails == among.start => found.units.saturating_sub(stride).max(fails.saturating_add(1)),
                Some(found) => fails.midpoint(found.units),
                None => at.saturating_add(stride).min(among.end),
            };
            (at, stride) = (next, stride.saturating_mul(2));
        }
        match found {
            Some(found) => Ok(found),
            None => try_out(among.end),
        }
    }

    fn guess(&self, units: &[Unit], goal: u64) -> usize {
        let pointer = self.ledger.prices().pointer;
        let mut left = self.request();
        let enough = |unit: &Unit| {
            left = left.saturating_sub(unit.tokens.saturating_sub(pointer));
            left <= goal
        };
        units.iter().position(enough).map_or(units.len(), |at| at.saturating_add(1))
    }

    /// What these units leave as, and what the request takes then: with a template, one summary of the evictable ones if it
    /// is smaller than they are; pointers otherwise.
    fn taking(
        &self,
        units: &[Unit],
        template: bool,
        counter: &dyn TokenCounter,
    ) -> Result<(Proposal, u64), FallBackError> {
        if template {
            let taken = self.leaving(units, true);
            match self.priced(taken.clone(), counter) {
                Ok(priced) => return Ok((taken, priced.after)),
                Err(ApplyError::Summary(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let taken = self.leaving(units, false);
        let after = self.priced(taken.clone(), counter)?.after;
        Ok((taken, after))
    }

    fn leaving(&self, units: &[Unit], template: bool) -> Proposal {
        let spans = |units: &mut dyn Iterator<Item = &Unit>| {
            let mut spans: Vec<_> = units.flat_map(|unit| self.unit(unit.span)).map(|(span, _)| span).collect();
            spans.sort_unstable();
            spans
        };
        let summarized = |unit: &&Unit| template && unit.class == Class::Evictable;
        let sources = spans(&mut units.iter().filter(summarized));
        let evict = spans(&mut units.iter().filter(|unit| !summarized(unit)));
        let summaries = if sources.is_empty() { Vec::new() } else { vec![(sources.clone(), self.template(&sources))] };
        Proposal { evict, summaries, ..self.no_proposal() }
    }

    fn template(&self, sources: &[SpanId]) -> SummaryText {
        let line = |span: &SpanId| {
            let entry = self.table.get(*span)?;
            Some(format!("{span}: {} tokens, {}", entry.tokens, self.first_words(entry)))
        };
        let lines: Vec<_> = sources.iter().filter_map(line).collect();
        summarize::by_template(lines.join("\n"))
    }

    fn unfittable(&self, needed: u64, budget: u64) -> FallBackError {
        let mut held = self.tally().held;
        let fixed = self.budget.map_or(0, |budget| budget.fixed());
        held.protected = 0;
        FallBackError::Unfittable { needed, budget, fixed, held }
    }
}
