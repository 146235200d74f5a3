//! Without a model: a fixed order frees the space when none may decide (rule R14).

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
    marker::PhantomData,
};

use super::{Proposal, Report};
use crate::{
    ApplyError, FallBackError, Origin, SpanId, SummarizeError, TokenCounter,
    accounting::{Note, PassRecord},
    gate::{Held, Refused},
    policy::Act,
    window::{
        Operation, Shared,
        candidates::{Class, Standing, Unit},
        contents::Contents,
        pointers::MOST_NAMED,
        prune::apply::{Change, Priced},
        step::Plan,
        summarize::{self, SummaryText},
        table::Entry,
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

/// A fallback's name read back from a log.
pub(crate) fn strategy_named(name: &str) -> &'static str {
    let known = [OldestFirst::NAME, LargestToolOutput::NAME, SupersededReads::NAME, FixedTemplate::NAME];
    known.into_iter().find(|known| *known == name).unwrap_or("unknown")
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
            let repeated = |span, entry: &Entry| {
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
    /// Nothing had to leave: the request is below the trigger. Nothing was written.
    Unneeded,
    /// The request is at or above the trigger, within the limit, and nothing is left that may leave: nothing was written.
    /// Push what a pending exchange lacks, or abandon its calls, raise the budget, or stop.
    Unchanged {
        /// What stays, and why.
        held: Held,
    },
    /// As the last time, and nothing changed since: asking again and again is a loop. Push, raise the budget, or stop.
    NoProgress {
        /// What the gate said.
        refused: Refused,
        /// What stays, and why.
        held: Held,
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
        let change = contents.change(chosen)?;
        let pass = change.pass(contents);
        let events = contents.events(Note::FellBack { strategy: B::NAME.into(), pass: pass.clone() }, &change);
        Ok(Plan { blobs: change.blobs.clone(), events, ..Plan::new(Freeing::Change(Box::new((change, pass)))) })
    }

    fn apply(effect: Freeing, _: Vec<Vec<u8>>, contents: &mut Contents, _: &'w Shared<St>) -> FellBack {
        match effect {
            Freeing::Nothing(refused) if contents.ledger.idle(contents.changes) => {
                FellBack::NoProgress { refused, held: contents.kept_back(&contents.in_order::<B>()) }
            }
            Freeing::Nothing(_) => contents.idle_as::<B>(),
            Freeing::Change(change) => {
                let (change, pass) = *change;
                contents.ledger.book(Note::FellBack { strategy: B::NAME.into(), pass: pass.clone() });
                FellBack::Freed(contents.carry_out(change, pass))
            }
        }
    }
}

/// How far a fallback got with the first so many units.
struct Reached {
    units: usize,
    priced: Priced,
}

impl Contents {
    fn idle_as<B: Fallback>(&self) -> FellBack {
        let due = self.budget.is_some_and(|budget| self.request() >= budget.trigger());
        if due { FellBack::Unchanged { held: self.kept_back(&self.in_order::<B>()) } } else { FellBack::Unneeded }
    }

    /// What leaves: the fewest units, in order, that bring the request below the trigger; with protected lanes only as
    /// far as the limit asks. `None` when nothing has to, or nothing can.
    fn choose<B: Fallback>(&self, counter: &dyn TokenCounter) -> Result<Option<Priced>, FallBackError> {
        let budget = self.budget.ok_or(FallBackError::NoBudget)?;
        let (before, limit, goal) = (self.request(), budget.limit(), budget.trigger().saturating_sub(1));
        if B::TEMPLATE && self.derived_lane().is_none() {
            return Err(FallBackError::NoDerivedLane);
        }
        if before <= goal {
            return Ok(None);
        }
        let units = self.in_order::<B>();
        let soft = units.partition_point(|unit| unit.class < Class::Protected);
        let mut template = B::TEMPLATE;
        let mut reached = self.fewest(&units, 0..soft, goal, template, counter)?;
        if template && reached.priced.after > goal {
            let pointers = self.fewest(&units, 0..soft, goal, false, counter)?;
            if pointers.priced.after < reached.priced.after {
                (reached, template) = (pointers, false);
            }
        }
        let paying = units.partition_point(|unit| self.pays(unit));
        for among in [soft..paying, paying..units.len()].into_iter().filter(|among| !among.is_empty()) {
            if reached.priced.after > limit {
                let more = self.fewest(&units, among, limit, template, counter)?;
                reached = if more.priced.after < reached.priced.after { more } else { reached };
            }
        }
        let Reached { units: taken, priced } = reached;
        match priced.after {
            after if after > limit => Err(self.unfittable(after, limit, units.get(..taken).unwrap_or_default())),
            after => Ok(Some(priced).filter(|_| taken > 0 && after < before)),
        }
    }

    /// The units that may leave without a model, in the order in which they do; of a class, the smallest ones last, those that
    /// take less than their names in a pointer after all others.
    fn in_order<B: Fallback>(&self) -> Vec<Unit> {
        let mut units: Vec<_> = self.units().filter(leaves).collect();
        for class in [Class::Evictable, Class::Rationale, Class::Derived, Class::Protected] {
            let small = |unit: &Unit| unit.class == class && unit.is_small();
            if units.iter().any(small) {
                let folding = self.folding(units.iter().filter(|unit| unit.class <= class));
                let folds = |unit: &Unit| self.unit(unit.span).all(|(span, _)| folding.binary_search(&span).is_ok());
                units.retain(|unit| !small(unit) || folds(unit));
            }
        }
        let rank = B::rank(self);
        units.sort_by_cached_key(|unit| (unit.class, unit.is_small(), !self.pays(unit), rank(unit)));
        units
    }

    /// The spans that take more, with the neighbours that leave before them or with them, than the pointers to them;
    /// ascending.
    fn folding<'a>(&self, units: impl Iterator<Item = &'a Unit>) -> Vec<SpanId> {
        let shared = units.filter(|unit| unit.class != Class::Derived);
        let mut spans: Vec<_> = shared.flat_map(|unit| self.unit(unit.span)).collect();
        spans.sort_unstable_by_key(|(span, _)| *span);
        let is_worth_it = |run: &&[(SpanId, &Entry)]| {
            let tokens = run.iter().fold(0_u64, |sum, (_, entry)| sum.saturating_add(u64::from(entry.tokens)));
            tokens > self.usual_pointers(run.iter().map(|(_, entry)| *entry))
        };
        let runs = spans.chunk_by(|(one, _), (other, _)| one.next() == *other).filter(is_worth_it);
        runs.flatten().map(|(span, _)| *span).collect()
    }

    /// What the pointers that these neighbours share usually take, in tokens.
    fn usual_pointers<'a>(&self, neighbours: impl Iterator<Item = &'a Entry>) -> u64 {
        let named = self.named_among(neighbours);
        let pointers = named.div_ceil(MOST_NAMED as u64).max(1);
        self.pointer_price.saturating_mul(pointers).saturating_add(self.name_price.saturating_mul(named))
    }

    /// Whether a unit takes no less than its names in a pointer that it shares usually do.
    fn pays(&self, unit: &Unit) -> bool {
        unit.tokens >= self.name_price.saturating_mul(self.named_among(self.unit(unit.span).map(|(_, entry)| entry)))
    }

    /// How many of these spans a pointer that they share names.
    fn named_among<'a>(&self, spans: impl Iterator<Item = &'a Entry>) -> u64 {
        let named = spans.filter(|entry| self.class(entry.lane) == Class::Protected).count();
        u64::try_from(named).unwrap_or(u64::MAX)
    }

    /// The fewest leading units, more than `among.start`, that bring the request to `goal`; all of `among` when none do.
    /// Each trial guesses by what the last one freed, now and then by halves, since a guess can go on missing by little:
    /// O(units taken), a few times over.
    fn fewest(
        &self,
        units: &[Unit],
        among: std::ops::Range<usize>,
        goal: u64,
        template: bool,
        counter: &dyn TokenCounter,
    ) -> Result<Reached, FallBackError> {
        let try_out = |count: usize| self.reached(units, count, template, counter);
        let first = first_freeing(units, self.request().saturating_sub(goal), self.pointer_price);
        let (mut fails, mut found, mut at) = (among.start, None::<Reached>, first);
        if among.is_empty() {
            return try_out(among.end);
        }
        for trial in 1_u32.. {
            let most = found.as_ref().map_or(among.end, |found| found.units.saturating_sub(1));
            let reached = try_out(at.max(fails.saturating_add(1)).min(most))?;
            let next = first_freeing(units, needed(&reached.priced, goal), 0);
            if reached.priced.after <= goal {
                found = Some(reached);
            } else if reached.units >= among.end {
                return Ok(reached);
            } else {
                fails = reached.units;
            }
            at = match found {
                Some(found) if found.units <= fails.saturating_add(1) => return Ok(found),
                Some(ref found) if trial.is_multiple_of(4) => fails.midpoint(found.units),
                None if trial.is_multiple_of(4) => fails.saturating_mul(2),
                _ => next,
            };
        }
        try_out(among.end)
    }

    /// What the first `count` units leave as. A template's list that is no shorter than its sources gives way to pointers.
    fn reached(
        &self,
        units: &[Unit],
        count: usize,
        template: bool,
        counter: &dyn TokenCounter,
    ) -> Result<Reached, FallBackError> {
        let taken = units.get(..count).unwrap_or_default();
        let mut priced = self.priced(self.taking(taken, template), counter);
        if let Err(ApplyError::Summary(SummarizeError::NotSmaller { .. })) = priced {
            priced = self.priced(self.taking(taken, false), counter);
        }
        Ok(Reached { units: count, priced: priced? })
    }

    /// What these units leave as: pointers, or with a template one summary of the evictable ones.
    fn taking(&self, units: &[Unit], template: bool) -> Proposal {
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

    fn unfittable(&self, needed: u64, budget: u64, left: &[Unit]) -> FallBackError {
        let fixed = self.budget.map_or(0, |budget| budget.fixed());
        let held = Held { protected: 0, ..self.kept_back(left) };
        FallBackError::Unfittable { needed, budget, fixed, held }
    }

    /// Why the rest stays where these units are all that may leave.
    fn kept_back(&self, left: &[Unit]) -> Held {
        // Whatever may leave has left, but for what its pointer outweighs.
        let left: HashSet<_> = left.iter().map(|unit| unit.span).collect();
        let small = self.units().filter(|unit| leaves(unit) && !left.contains(&unit.span));
        let small = small.fold(0_u64, |sum, unit| sum.saturating_add(unit.tokens));
        Held { small, rationales: 0, calls: self.open_calls(), ..self.tally().held }
    }
}

/// What has to be taken to come to `goal`, in tokens, if it goes on as in this trial.
fn needed(trial: &Priced, goal: u64) -> u64 {
    let freed = u128::from(trial.before.saturating_sub(trial.after));
    let part = u128::from(trial.gross).saturating_mul(u128::from(trial.before.saturating_sub(goal)));
    part.checked_div(freed).and_then(|tokens| u64::try_from(tokens).ok()).unwrap_or(u64::MAX)
}

/// How many of the first units free so many tokens, where each costs a pointer; or all.
fn first_freeing(units: &[Unit], tokens: u64, pointer: u64) -> usize {
    let mut left = tokens;
    let enough = |unit: &Unit| {
        left = left.saturating_sub(unit.tokens.saturating_sub(pointer));
        left == 0
    };
    units.iter().position(enough).map_or(units.len(), |at| at.saturating_add(1))
}

/// Whether a unit may leave without a model (rule R14).
fn leaves(unit: &Unit) -> bool {
    unit.class < Class::Kept && unit.standing == Standing::Free
}
