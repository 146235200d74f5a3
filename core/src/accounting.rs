//! What pruning really cost and freed: eviction counts look well while the headroom goes, so net tokens are kept. Ids and
//! counts only, never text.

use std::{
    borrow::Cow,
    collections::{BTreeMap, VecDeque},
};

use serde::{Deserialize, Serialize};

use crate::{Budget, EpisodeId, gate::Refused, telemetry, window::strategy_named};

/// How many events are kept for [`Accounting::events`] and the warning; the sums are of all.
const KEPT: usize = 1_024;

/// One pass, as it is recorded in the store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassRecord {
    /// Tokens pushed since the episode began.
    pub at: u64,
    /// What the request took before, the fixed part included.
    pub before: u64,
    /// What it takes now.
    pub after: u64,
    /// What left: spans, the sources of summaries, and pointers that folded, where more went than came.
    pub gross: u64,
    /// Pointers and summaries that took its place.
    pub pointers: u64,
    /// What the model read to decide.
    pub index: u64,
    /// What it wrote, as reported or counted.
    pub rationale: u64,
    /// What of that stays in the window, in the rationale lane.
    pub kept: u64,
    /// What losing the provider's cache cost, as tokens.
    pub cache: u64,
    /// How many spans left.
    pub spans: u64,
}

impl PassRecord {
    /// What was freed beyond all it cost: negative when the pass did harm.
    pub fn net(&self) -> i64 {
        self.without([self.pointers, self.cache, self.index, self.rationale])
    }

    /// What was freed beyond what is left behind, whatever deciding took.
    fn freed(&self) -> i64 {
        self.without([self.pointers, self.cache, 0, 0])
    }

    fn without(&self, costs: [u64; 4]) -> i64 {
        let net = costs.map(i128::from).into_iter().fold(i128::from(self.gross), i128::saturating_sub);
        i64::try_from(net).unwrap_or(if net < 0 { i64::MIN } else { i64::MAX })
    }

    /// What deciding took: index and rationale.
    pub fn overhead(&self) -> u64 {
        self.index.saturating_add(self.rationale)
    }
}

/// One thing that happened to the window's size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum PruneEvent {
    /// A model's answer was read: this is spent, whatever comes of it.
    Decided {
        /// Tokens pushed since the episode began.
        at: u64,
        /// What the request takes.
        utilization: u64,
        /// What the model read.
        index: u64,
        /// What it wrote.
        rationale: u64,
        /// Whether its answer was a proposal.
        accepted: bool,
    },
    /// A model's pass was applied; its index and rationale are those of the decision before.
    Passed(PassRecord),
    /// A model's pass changed nothing.
    Unchanged {
        /// Tokens pushed since the episode began.
        at: u64,
        /// What the request takes.
        utilization: u64,
    },
    /// The gate refused.
    Refused {
        /// Tokens pushed since the episode began.
        at: u64,
        /// What the request takes.
        utilization: u64,
        /// Why: `decision_in_band`.
        reason: &'static str,
    },
    /// What a pass or a fallback took was brought back.
    Undone {
        /// Tokens pushed since the episode began.
        at: u64,
        /// What the request took before.
        before: u64,
        /// What it takes now.
        after: u64,
    },
    /// A fallback freed space without a model.
    FellBack {
        /// Tokens pushed since the episode began.
        at: u64,
        /// Its name: `oldest_first`.
        strategy: &'static str,
        /// What the request took before.
        before: u64,
        /// What it takes now.
        after: u64,
        /// How many spans left.
        spans: u64,
    },
}

impl PruneEvent {
    /// Tokens pushed since the episode began, when it happened.
    pub fn at(&self) -> u64 {
        match self {
            Self::Passed(PassRecord { at, .. })
            | Self::Unchanged { at, .. }
            | Self::Decided { at, .. }
            | Self::Refused { at, .. }
            | Self::Undone { at, .. }
            | Self::FellBack { at, .. } => *at,
        }
    }

    /// What the request takes after it.
    pub fn utilization(&self) -> u64 {
        match self {
            Self::Passed(PassRecord { after, .. }) | Self::Undone { after, .. } | Self::FellBack { after, .. } => {
                *after
            }
            Self::Unchanged { utilization, .. }
            | Self::Decided { utilization, .. }
            | Self::Refused { utilization, .. } => *utilization,
        }
    }
}

/// Passes that come ever sooner while each leaves less headroom: the signature of a policy that feeds on itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Oscillation {
    /// How many passes in a row show it.
    pub passes: usize,
    /// Tokens pushed between the first two of them.
    pub first_gap: u64,
    /// Tokens pushed between the last two.
    pub last_gap: u64,
    /// What the request took after the first.
    pub first_after: u64,
    /// What it took after the last.
    pub last_after: u64,
}

/// How many passes in a row make a warning.
const IN_A_ROW: usize = 4;

/// What pruning did in this episode, as a value; see [`Window::accounting`](crate::Window::accounting). A pass that was
/// [undone](crate::Window::undo) counts as it was: it freed, and it was paid.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Accounting {
    /// Passes that were applied.
    pub passes: u64,
    /// Passes that changed nothing.
    pub unchanged: u64,
    /// Answers that [`Pass::parse`](crate::Pass::parse) refused: what they took is in the sums. One that is no
    /// [`Answer`](crate::tool::Answer) never gets that far.
    pub rejected: u64,
    /// Tokens that left in passes.
    pub gross: u64,
    /// What was gained beyond all costs, those of answers that came to nothing included.
    pub net: i64,
    /// Tokens that models read to decide, answers that were refused included.
    pub index: u64,
    /// Tokens that models wrote to decide, answers that were refused included.
    pub rationale: u64,
    /// Tokens of pointers and summaries left behind.
    pub pointers: u64,
    /// Tokens that losing the provider's cache cost.
    pub cache: u64,
    /// Refusals by reason.
    pub refusals: BTreeMap<&'static str, u64>,
    /// Tokens that were brought back by undoing passes and fallbacks; not taken off the other sums.
    pub undone: u64,
    /// Fallbacks that freed space.
    pub fallbacks: u64,
    /// Tokens that they freed.
    pub fallback_freed: u64,
    /// What a request may take, in tokens; 0 without a budget.
    pub limit: u64,
    events: VecDeque<PruneEvent>,
}

impl Accounting {
    /// Tokens spent deciding for each token of net reclamation; `None` while nothing was reclaimed on balance. Above 1
    /// the policy costs more than it frees.
    pub fn overhead_ratio(&self) -> Option<f64> {
        let spent = self.index.saturating_add(self.rationale);
        (self.net > 0).then(|| spent as f64 / self.net as f64)
    }

    /// The latest events, oldest first: utilization, and so headroom, over time. At most 1,024 are kept.
    pub fn events(&self) -> impl DoubleEndedIterator<Item = &PruneEvent> {
        self.events.iter()
    }

    /// Headroom over time: what was free after each of those events, in tokens, with the tokens pushed by then. Negative
    /// where the request was too large.
    pub fn headroom(&self) -> impl DoubleEndedIterator<Item = (u64, i64)> {
        let free = |event: &PruneEvent| {
            let free = i128::from(self.limit).saturating_sub(i128::from(event.utilization()));
            i64::try_from(free).unwrap_or(i64::MIN)
        };
        self.events.iter().map(move |event| (event.at(), free(event)))
    }

    /// The events as JSON, one a line. Counts only.
    ///
    /// # Errors
    /// When the JSON cannot be written, which counts never cause.
    pub fn json_lines(&self) -> Result<String, serde_json::Error> {
        self.events.iter().try_fold(String::new(), |mut lines, event| {
            lines.push_str(&serde_json::to_string(event)?);
            lines.push('\n');
            Ok(lines)
        })
    }

    /// The warning: the last passes, four at least, each came sooner than the one before and left less headroom.
    pub fn oscillation(&self) -> Option<Oscillation> {
        let passes: Vec<_> = self
            .events
            .iter()
            .rev()
            .filter_map(|event| if let PruneEvent::Passed(pass) = event { Some((pass.at, pass.after)) } else { None })
            .collect();
        // Newest first: each gap no larger than the next older one, each `after` above the next older one.
        let worse = |three: &&[(u64, u64)]| match three {
            [(new, after), (mid, mid_after), (old, old_after)] => {
                new.saturating_sub(*mid) <= mid.saturating_sub(*old) && after > mid_after && mid_after > old_after
            }
            _ => false,
        };
        let passes_in_a_row = passes.windows(3).take_while(worse).count().saturating_add(2);
        if passes_in_a_row < IN_A_ROW {
            return None;
        }
        let row = passes.get(..passes_in_a_row)?;
        let (newest, oldest) = (row.first()?, row.last()?);
        let gap = |new: Option<&(u64, u64)>, old: Option<&(u64, u64)>| Some(new?.0.saturating_sub(old?.0));
        Some(Oscillation {
            passes: passes_in_a_row,
            first_gap: gap(row.iter().rev().nth(1), row.last())?,
            last_gap: gap(row.first(), row.get(1))?,
            first_after: oldest.1,
            last_after: newest.1,
        })
    }

    fn keep(&mut self, event: PruneEvent) {
        if self.events.len() == KEPT {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}

/// One thing that goes into the books, as the log has it: from its notes the books are what they were (rule R26).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Note {
    /// A model decided: what that took is spent, and known, whatever becomes of its answer. It took so many of the
    /// `offered` tokens, where the answer could be accepted.
    Decided {
        at: u64,
        utilization: u64,
        index: u64,
        rationale: u64,
        taken: Option<u64>,
        offered: u64,
    },
    /// A pass was applied, with what each of its pointers added.
    Passed {
        pass: PassRecord,
        pointer: Option<u64>,
    },
    Unchanged {
        at: u64,
        utilization: u64,
    },
    Refused {
        at: u64,
        utilization: u64,
        reason: Cow<'static, str>,
        again: bool,
    },
    Undone {
        at: u64,
        before: u64,
        after: u64,
    },
    FellBack {
        strategy: Cow<'static, str>,
        pass: PassRecord,
    },
}

impl Note {
    /// What it is to a reader; a refusal that only repeats the one before is nothing new, and would push all else out.
    pub(crate) fn event(&self) -> Option<PruneEvent> {
        Some(match self {
            Self::Decided { at, utilization, index, rationale, taken, .. } => PruneEvent::Decided {
                at: *at,
                utilization: *utilization,
                index: *index,
                rationale: *rationale,
                accepted: taken.is_some(),
            },
            Self::Passed { pass, .. } => PruneEvent::Passed(pass.clone()),
            Self::Unchanged { at, utilization } => PruneEvent::Unchanged { at: *at, utilization: *utilization },
            Self::Refused { again: true, .. } => return None,
            Self::Refused { at, utilization, reason, .. } => {
                PruneEvent::Refused { at: *at, utilization: *utilization, reason: Refused::named(reason) }
            }
            Self::Undone { at, before, after } => PruneEvent::Undone { at: *at, before: *before, after: *after },
            Self::FellBack { strategy, pass: PassRecord { at, before, after, spans, .. } } => PruneEvent::FellBack {
                at: *at,
                strategy: strategy_named(strategy),
                before: *before,
                after: *after,
                spans: *spans,
            },
        })
    }

    /// Whether it is of a commit, which has it as an event.
    fn has_a_commit(&self) -> bool {
        matches!(self, Self::Passed { .. } | Self::Undone { .. } | Self::FellBack { .. })
    }
}

/// A price that starts as declared and follows what passes really cost: up at once, down slowly, within bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expected {
    value: u64,
    ceiling: u64,
}

impl Expected {
    pub(crate) fn new(declared: u64, ceiling: u64) -> Self {
        Self { value: declared, ceiling: ceiling.max(declared) }
    }

    fn observe(&mut self, measured: u64) {
        let down = self.value.saturating_sub(measured).div_ceil(4);
        self.value = self.value.saturating_sub(down).max(measured).clamp(1, self.ceiling.max(1));
    }
}

/// An eighth: what a model is expected to take at least, and what a fallback adds.
const LEAST_UPTAKE: u64 = 125;

/// What a window expects a decision to cost, in tokens: as its policy says at first, then as measured (rule R11).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Prices {
    /// What the model reads.
    pub index: u64,
    /// What it writes.
    pub rationale: u64,
    /// One pointer.
    pub pointer: u64,
    /// How many of 1,000 offered tokens models take: all at first, then as measured. What they declined before is offered
    /// again, and would otherwise make the gate promise it again. Each fallback adds an eighth, up to all.
    pub uptake: u64,
    /// Whether rationales are longer than the policy leaves room for: declare a larger `rationale`, or a lower trigger.
    pub rationale_exceeds_policy: bool,
}

/// The window's own books.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    pub(crate) accounting: Accounting,
    episode: EpisodeId,
    budget: Option<Budget>,
    index: Expected,
    rationale: Expected,
    pointer: Expected,
    uptake: u64,
    /// The last refusal and how often it came while nothing changed.
    refusal: Option<(u64, &'static str, u32)>,
    /// The state of the window in which a fallback changed nothing.
    idle: Option<u64>,
    unwritten: Vec<Note>,
    /// How many notes records have, but for those with a commit of their own.
    recorded: usize,
}

impl Ledger {
    /// Starts from the budget; a rationale may grow until deciding takes all the headroom that the trigger leaves, and a
    /// pointer to four usual ones: one that names a hundred sources must not price out all others.
    pub(crate) fn new(episode: EpisodeId, budget: Option<Budget>, pointer: u64) -> Self {
        let (index, rationale, ceiling) = budget.as_ref().map_or((0, 0, 0), |budget| {
            let room = budget.limit().saturating_sub(budget.trigger()).saturating_sub(budget.index());
            (budget.index(), budget.rationale(), room)
        });
        Self {
            accounting: Accounting {
                limit: budget.as_ref().map_or(0, |budget| budget.limit()),
                ..Accounting::default()
            },
            episode,
            budget,
            index: Expected::new(index, index),
            rationale: Expected::new(rationale, ceiling),
            pointer: Expected::new(pointer, pointer.saturating_mul(4)),
            uptake: 1_000,
            refusal: None,
            idle: None,
            unwritten: Vec::new(),
            recorded: 0,
        }
    }

    pub(crate) fn prices(&self) -> Prices {
        Prices {
            index: self.index.value,
            rationale: self.rationale.value,
            pointer: self.pointer.value,
            uptake: self.uptake,
            rationale_exceeds_policy: self.rationale.value >= self.rationale.ceiling && self.accounting.passes > 0,
        }
    }

    /// What happened, now; it is written with the next commit, unless it has one of its own.
    pub(crate) fn book(&mut self, note: Note) {
        let event = self.take(&note);
        if let Some(event) = event {
            telemetry::emit(&self.episode, self.budget.as_ref(), &event);
            self.accounting.keep(event);
        }
        if !note.has_a_commit() {
            self.unwritten.push(note);
        }
    }

    /// What happened before this process had the episode.
    pub(crate) fn replay(&mut self, note: &Note) {
        if let Some(event) = self.take(note) {
            self.accounting.keep(event);
        }
    }

    /// Takes over what no record has of the books of the same episode: all but the first `written` of its notes.
    pub(crate) fn keep_unwritten(&mut self, old: &Self) {
        let recorded = self.recorded.saturating_sub(old.recorded);
        for note in old.unwritten.iter().skip(recorded) {
            self.replay(note);
            self.unwritten.push(note.clone());
        }
        self.refusal = old.refusal;
    }

    /// Notes that no record has yet.
    pub(crate) fn unwritten(&self) -> &[Note] {
        &self.unwritten
    }

    /// The first so many of them are in a record now.
    pub(crate) fn written(&mut self, notes: usize) {
        self.recorded = self.recorded.saturating_add(notes);
        self.unwritten.drain(..notes.min(self.unwritten.len()));
    }

    /// Takes a note into the books; gives the event that it is, where it is one.
    fn take(&mut self, note: &Note) -> Option<PruneEvent> {
        let sums = &mut self.accounting;
        match note {
            Note::Decided { index, rationale, taken, offered, .. } => {
                self.index.observe(*index);
                self.rationale.observe(*rationale);
                let share = taken.and_then(|taken| taken.min(*offered).saturating_mul(1_000).checked_div(*offered));
                if let Some(share) = share {
                    self.uptake = self.uptake.midpoint(share).max(LEAST_UPTAKE);
                }
                sums.index = sums.index.saturating_add(*index);
                sums.rationale = sums.rationale.saturating_add(*rationale);
                sums.net = sums.net.saturating_sub_unsigned(index.saturating_add(*rationale));
                sums.rejected = sums.rejected.saturating_add(u64::from(taken.is_none()));
            }
            Note::Passed { pass, pointer } => {
                if let Some(each) = pointer {
                    self.pointer.observe(*each);
                }
                sums.passes = sums.passes.saturating_add(1);
                sums.gross = sums.gross.saturating_add(pass.gross);
                // Deciding was charged when the answer was read.
                sums.net = sums.net.saturating_add(pass.freed());
                sums.pointers = sums.pointers.saturating_add(pass.pointers);
                sums.cache = sums.cache.saturating_add(pass.cache);
            }
            Note::Unchanged { .. } => sums.unchanged = sums.unchanged.saturating_add(1),
            Note::Refused { reason, .. } => {
                let count = sums.refusals.entry(Refused::named(reason)).or_default();
                *count = count.saturating_add(1);
            }
            Note::Undone { before, after, .. } => {
                sums.undone = sums.undone.saturating_add(after.saturating_sub(*before));
            }
            Note::FellBack { pass, .. } => {
                // A model that is not asked measures nothing: one wordy or idle answer must not keep the gate shut for
                // good.
                self.uptake = self.uptake.saturating_add(LEAST_UPTAKE).min(1_000);
                self.rationale.observe(self.rationale.value.min(self.budget.map_or(0, Budget::rationale)));
                sums.fallbacks = sums.fallbacks.saturating_add(1);
                sums.fallback_freed = sums.fallback_freed.saturating_add(pass.before.saturating_sub(pass.after));
            }
        }
        note.event()
    }

    /// Counts a refusal; how often it came by now while nothing changed.
    pub(crate) fn refused(&mut self, at: u64, utilization: u64, changes: u64, reason: &'static str) -> u32 {
        let times = match self.refusal {
            Some((then, same, times)) if then == changes && same == reason => times.saturating_add(1),
            _ => 1,
        };
        self.refusal = Some((changes, reason, times));
        self.book(Note::Refused { at, utilization, reason: reason.into(), again: times > 1 });
        times
    }

    /// A fallback changed nothing; whether that was so before, in the same state of the window.
    pub(crate) fn idle(&mut self, changes: u64) -> bool {
        self.idle.replace(changes) == Some(changes)
    }
}
