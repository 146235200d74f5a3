//! Apply: a checked proposal becomes one atomic commit, or nothing at all (rules R7, R24).

use super::{Preview, Proposal};
use crate::{
    ApplyError, ProposalError, SelectionError, SpanId, TokenCounter, Tombstone,
    accounting::{Note, PassRecord},
    journal::Event,
    store::Blob,
    window::{
        Operation, Shared,
        candidates::Class,
        contents::{Contents, Derivation},
        pointers::Edit,
        step::Plan,
        summarize,
        table::{Entry, Residency},
    },
};

/// Applies a proposal; see [`Pass::apply`](super::Pass::apply). Gives the [`Outcome`].
#[derive(Debug)]
pub struct Apply {
    pub(super) proposal: Proposal,
    /// What the model read, in tokens.
    pub(super) index: u64,
}

/// What a pass came to.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "an unchanged window is as full as before"]
pub enum Outcome {
    /// There was nothing new to do: nothing was written, and the window is as it was (rule R24).
    Unchanged,
    /// Spans left.
    Pruned(Report),
}

/// What left a window, and what it cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The window that it is of.
    pub(super) window: u64,
    pub(super) tombstones: Vec<Tombstone>,
    pub(super) summaries: Vec<SpanId>,
    pub(super) rationale: Option<SpanId>,
    pub(super) pass: PassRecord,
}

impl Report {
    /// The spans that left, ascending within evictions and within each summary.
    pub fn tombstones(&self) -> &[Tombstone] {
        &self.tombstones
    }

    /// The summaries that took the place of some of them.
    pub fn summaries(&self) -> &[SpanId] {
        &self.summaries
    }

    /// The rationale, where the struct has a lane for it.
    pub fn rationale(&self) -> Option<SpanId> {
        self.rationale
    }

    /// The numbers, in tokens.
    pub fn pass(&self) -> &PassRecord {
        &self.pass
    }
}

/// Everything a proposal changes, priced and ready, but for the tombstones.
#[derive(Debug)]
pub struct Priced {
    evict: Vec<SpanId>,
    edit: Edit,
    summaries: Vec<Summary>,
    rationale: Option<Entry>,
    pub(super) gross: u64,
    pointers: u64,
    kept: u64,
    pub(super) before: u64,
    pub(super) after: u64,
}

/// As it is committed.
#[derive(Debug)]
pub struct Change {
    priced: Priced,
    tombstones: Vec<Tombstone>,
    /// The texts of its summaries.
    pub(super) blobs: Vec<(Option<SpanId>, Blob)>,
}

#[derive(Debug)]
struct Summary {
    span: SpanId,
    entry: Entry,
    sources: Vec<SpanId>,
}

#[doc(hidden)]
#[derive(Debug)]
pub struct Applied {
    change: Option<Change>,
    pass: PassRecord,
}

impl<'w, St> Operation<'w, St> for Apply {
    type Output = Outcome;
    type Error = ApplyError;
    type Effect = Applied;
    // As for a summary alone: the tombstones of its sources wait until it is proven readable.
    const BLOBS_FIRST: bool = true;

    fn plan(self, contents: &Contents, counter: &dyn TokenCounter) -> Result<Plan<Applied>, ApplyError> {
        let Self { proposal, index } = self;
        let rationale = proposal.written;
        contents.fits(&proposal)?;
        if proposal.is_empty() {
            let pass = PassRecord { index, rationale, ..contents.pass() };
            return Ok(Plan::new(Applied { change: None, pass }));
        }
        contents.vet(&proposal)?;
        let change = contents.change(contents.priced(proposal, counter)?)?;
        let first = change.tombstones.iter().map(Tombstone::span).min().filter(|_| contents.cache.is_some());
        let cache = contents.cache_cost(first.map(|first| contents.tokens_before(first)));
        let pass = PassRecord { index, rationale, cache, ..change.pass(contents) };
        let note = Note::Passed { pass: pass.clone(), pointer: change.priced.each_pointer() };
        let events = contents.events(note, &change);
        Ok(Plan { blobs: change.blobs.clone(), events, ..Plan::new(Applied { change: Some(change), pass }) })
    }

    fn apply(effect: Applied, _: Vec<Vec<u8>>, contents: &mut Contents, _: &'w Shared<St>) -> Outcome {
        let Applied { change, pass } = effect;
        let Some(change) = change else {
            contents.ledger.book(Note::Unchanged { at: pass.at, utilization: pass.after });
            return Outcome::Unchanged;
        };
        contents.ledger.book(Note::Passed { pass: pass.clone(), pointer: change.priced.each_pointer() });
        Outcome::Pruned(contents.carry_out(change, pass))
    }
}

impl Priced {
    /// What each new pointer adds to the window; summaries are no pointers.
    fn each_pointer(&self) -> Option<u64> {
        let summaries = self.summaries.iter().map(|summary| u64::from(summary.entry.tokens));
        summaries.fold(self.pointers, u64::saturating_sub).checked_div(self.edit.added())
    }
}

impl Change {
    /// The numbers of a change that no model decided.
    pub(super) fn pass(&self, contents: &Contents) -> PassRecord {
        let Priced { before, after, gross, pointers, kept, .. } = self.priced;
        let spans = u64::try_from(self.tombstones.len()).unwrap_or(u64::MAX);
        PassRecord { before, after, gross, pointers, kept, spans, ..contents.pass() }
    }
}

impl Contents {
    /// The record of a pass in which nothing happens.
    fn pass(&self) -> PassRecord {
        let request = self.request();
        PassRecord { at: self.pushed_tokens, before: request, after: request, ..PassRecord::default() }
    }

    pub(super) fn preview(&self, proposal: &Proposal, counter: &dyn TokenCounter) -> Result<Preview, ApplyError> {
        self.fits(proposal)?;
        self.vet(proposal)?;
        let Priced { before, after, gross, pointers, kept, .. } = self.priced(proposal.clone(), counter)?;
        Ok(Preview { before, after, gross, pointers, rationale: kept })
    }

    /// Makes the tombstones of what makes the window smaller. O(spans it names).
    pub(super) fn change(&self, mut priced: Priced) -> Result<Change, ApplyError> {
        let Priced { before, after, .. } = priced;
        if after >= before {
            return Err(ApplyError::NotSmaller { before, after });
        }
        let evicted = priced.evict.iter().map(|span| (*span, None));
        let replaced =
            priced.summaries.iter().flat_map(|summary| summary.sources.iter().map(|s| (*s, Some(summary.span))));
        let tombstone = |(span, by)| {
            self.tombstone(span, None, by).ok_or(ApplyError::from(SelectionError::NotExternalized { span }))
        };
        let tombstones = evicted.chain(replaced).map(tombstone).collect::<Result<_, _>>()?;
        let blob = |Summary { span, entry, .. }: &mut Summary| Some((Some(*span), summarize::sealed(entry)?));
        let blobs = priced.summaries.iter_mut().filter_map(blob).collect();
        Ok(Change { priced, tombstones, blobs })
    }

    /// What a proposal comes to, exactly. O(spans it names).
    pub(super) fn priced(&self, proposal: Proposal, counter: &dyn TokenCounter) -> Result<Priced, ApplyError> {
        let Proposal { evict, summaries, rationale, .. } = proposal;
        let edit = self.pointers.cover(&evict, &|first, last| self.named(first, last), &self.price(counter))?;
        let mut gross = self.tokens_of(&evict);
        let (mut span, mut start) = (self.table.next_id(), self.pushed_tokens);
        let mut made = Vec::with_capacity(summaries.len());
        for (sources, text) in summaries {
            let lane = self.derived_lane().ok_or(ProposalError::NoDerivedLane)?;
            let entry = Entry { start, ..summarize::made(self, lane, span, &sources, &text, counter)? };
            let of = self.tokens_of(&sources);
            summarize::smaller(u64::from(entry.tokens), of)?;
            gross = gross.saturating_add(of);
            start = entry.end();
            made.push(Summary { span, entry, sources });
            span = span.next();
        }
        let rationale = match (self.lane_of(Class::Rationale), rationale) {
            (Some(lane), Some(text)) => Some(self.rationale_entry(lane, start, text, counter)?),
            _ => None,
        };
        let (gone, come) = self.pointers.delta(&edit);
        let come = made.iter().fold(come, |sum, summary| sum.saturating_add(u64::from(summary.entry.tokens)));
        let kept = rationale.as_ref().map_or(0, |entry| u64::from(entry.tokens));
        let before = self.request();
        let after = before.saturating_add(come).saturating_add(kept).saturating_sub(gone).saturating_sub(gross);
        // Where pointers fold, more of them can go than come.
        let (gross, pointers) = (gross.saturating_add(gone.saturating_sub(come)), come.saturating_sub(gone));
        Ok(Priced { evict, edit, summaries: made, rationale, gross, pointers, kept, before, after })
    }

    pub(crate) fn tokens_of(&self, spans: &[SpanId]) -> u64 {
        let tokens = |span: &SpanId| self.table.get(*span).map_or(0, |entry| u64::from(entry.tokens));
        spans.iter().map(tokens).fold(0, u64::saturating_add)
    }

    /// Enters as any pushed text does, and is externalized with what is pushed next.
    fn rationale_entry(
        &self,
        lane: u16,
        start: u64,
        text: String,
        counter: &dyn TokenCounter,
    ) -> Result<Entry, ApplyError> {
        let count = counter.text(&text)?;
        Ok(Entry { start, ..summarize::entry(self, lane, text, count) })
    }

    /// What is committed: what happened, then the summaries, then the tombstones.
    pub(super) fn events(&self, note: Note, change: &Change) -> Vec<Event> {
        let Priced { summaries, rationale, edit, .. } = &change.priced;
        let mut events = Vec::with_capacity(change.tombstones.len().saturating_add(2));
        let after = summaries.last().map_or(self.table.next_id(), |summary| summary.span.next());
        events.push(Event::Booked { note, written: rationale.is_some().then_some(after) });
        events.extend(change.tombstones.iter().filter(|gone| gone.replaced_by().is_none()).map(evicted));
        events.extend((!edit.is_empty()).then(|| Event::Pointed(edit.clone())));
        for Summary { span, entry, sources } in summaries {
            let summary = self.span_record(*span, entry, Some(entry.digest));
            events.push(Event::Summarized { summary, sources: sources.clone(), depth: 1, escalation: None });
        }
        events.extend(change.tombstones.iter().filter(|gone| gone.replaced_by().is_some()).map(evicted));
        events
    }

    pub(super) fn carry_out(&mut self, change: Change, pass: PassRecord) -> Report {
        let Change { priced: Priced { evict, edit, summaries, rationale, .. }, tombstones, .. } = change;
        for span in evict {
            self.leave(span, Residency::Evicted);
        }
        self.repoint(edit);
        let mut made = Vec::with_capacity(summaries.len());
        for Summary { entry, sources, .. } in summaries {
            made.push(self.replace(entry, Derivation { sources, depth: 1 }));
        }
        let rationale = rationale.map(|entry| self.enter(entry));
        self.fresh.extend(rationale);
        Report { window: self.moment().window, tombstones, summaries: made, rationale, pass }
    }

    /// Tokens of the resident spans before `span`.
    fn tokens_before(&self, span: SpanId) -> u64 {
        let before = self.table.resident().take_while(|(other, _)| *other < span);
        before.map(|(_, entry)| u64::from(entry.tokens)).fold(0, u64::saturating_add)
    }
}

/// A tombstone as it is recorded.
pub(super) fn evicted(tombstone: &Tombstone) -> Event {
    Event::Evicted(tombstone.record().clone())
}
