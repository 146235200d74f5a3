//! From records to the window that wrote them (rule R26). Every record is checked against those before it: a log that
//! does not add up is refused, since what follows would rest on it.

use std::collections::{BTreeMap, BTreeSet};

use super::{Ceiling, Entry, Event, Fault, JournalError, MutationRecord, Probe, SpanRecord, TombstoneRecord, walk};
use crate::{
    Digest, Episode, EpisodeId, LaneSpec, SpanId,
    action::{Ending, Intent},
    kind::{Derived, Evictable, Kind as _},
    span::Part,
    state,
    store::AsyncStore,
    window::{
        candidates::Class,
        contents::{Contents, Derivation},
        table::{Entry as Row, Residency},
    },
};

/// No episode loses so many spans: a log that says so is damaged, and is not to fill the memory.
const MOST_LOST: u64 = 1 << 20;

/// A log, read as far as it goes.
pub(crate) struct Replay {
    contents: Contents,
    known: &'static [LaneSpec],
    /// Spans from this one on are left out, and what happened after it entered.
    until: Option<SpanId>,
    /// Rationales: what pruning wrote makes nothing older.
    written: BTreeSet<SpanId>,
    /// How many spans had entered, whether a commit ever had them or not.
    entered: u64,
    /// Sources that a summary took the place of, until their tombstones come.
    owed: BTreeSet<SpanId>,
    parts: BTreeMap<SpanId, Part>,
    /// What was removed for good after the moment that the log is read up to.
    removed: Vec<(SpanId, MutationRecord)>,
    /// Of the record at hand, in milliseconds since 1970.
    time: u64,
    facts: Facts,
}

/// What a log says beside the window.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// The name of the state struct.
    pub(crate) state: String,
    pub(crate) probe: Option<Probe>,
    pub(crate) ceiling: Option<Ceiling>,
    /// How often the episode was resumed.
    pub(crate) resumed: u64,
    /// Whether its last event is that it was closed.
    pub(crate) closed: bool,
    /// What actions gave: the blob, the action and the attempt.
    pub(crate) outcomes: Vec<(Digest, String, u64)>,
}

/// A window as its log has it; texts are still in the store.
pub(crate) struct Replayed {
    pub(crate) contents: Contents,
    pub(crate) facts: Facts,
}

impl Replay {
    /// Begins with an empty window of an episode. `known` saves the lanes from being kept twice.
    pub(crate) fn over(contents: Contents, known: &'static [LaneSpec]) -> Self {
        Self {
            contents,
            known,
            until: None,
            written: BTreeSet::new(),
            entered: 0,
            owed: BTreeSet::new(),
            parts: BTreeMap::new(),
            removed: Vec::new(),
            time: 0,
            facts: Facts::default(),
        }
    }

    /// The window as far as the log was read.
    pub(crate) fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Goes no further than to the moment before this span entered.
    pub(crate) fn until(self, span: SpanId) -> Self {
        Self { until: Some(span), ..self }
    }

    /// Reads a whole log from the store, in pages. O(records), the texts not read.
    pub(crate) async fn read<S: AsyncStore>(mut self, store: &S) -> Result<Replayed, JournalError> {
        let episode = self.contents.episode.clone();
        walk(store, &episode, |_, entry, chain| self.entry(entry, chain)).await?;
        self.finish()
    }

    /// One commit.
    pub(crate) fn entry(&mut self, entry: Entry<'_>, chain: Digest) -> Result<(), Fault> {
        let first = self.contents.length == 0;
        self.time = entry.time;
        self.contents.recorded(chain, 0, entry.notes.len());
        self.contents.names.replay(&entry.names).map_err(|_| Fault::Unknown { what: "tool name" })?;
        for note in &entry.notes {
            self.contents.ledger.replay(note);
        }
        self.gave(entry.spans, entry.events.at_most())?;
        // The window that a model saw when this span came from it had none of what came later.
        let later = self.until.is_some_and(|until| entry.spans >= until.number());
        for (at, event) in entry.events.enumerate() {
            let event = event?;
            self.facts.closed = matches!(event, Event::Closed);
            if (first && at == 0) != matches!(event, Event::Opened { .. }) {
                return Err(Fault::Opening);
            }
            match event {
                Event::Externalized(span) if !self.is_after(span.span) => self.externalized(span)?,
                Event::Externalized(_) => {}
                event if !later => self.event(event)?,
                // What the model saw then, and nobody can see now.
                Event::Discarded { span, mutation } if !self.is_after(span.span) => {
                    self.discarded(&span)?;
                    self.removed.push((span.span, mutation));
                }
                Event::Redacted { spans, mutations, .. } => self.removed.extend(spans.into_iter().zip(mutations)),
                _ => {}
            }
        }
        if !later {
            // Numbers that were given away, in case their texts are never committed.
            self.gave(self.written.last().map_or(0, |span| span.number()), 0)?;
            self.contents.reserve(SpanId::mint(self.entered));
        }
        match self.owed.pop_first() {
            Some(span) => Err(Fault::Contradicts { span, what: "a summary took its place, and no tombstone says so" }),
            None => Ok(()),
        }
    }

    /// So many numbers were given away by now, of which the record at hand brings the spans of some.
    fn gave(&mut self, spans: u64, brings: u64) -> Result<(), Fault> {
        self.entered = self.entered.max(spans);
        let Contents { table, gaps, .. } = &self.contents;
        let new = self.entered.saturating_sub(table.len()).saturating_sub(brings);
        let lost = u64::try_from(gaps.len()).unwrap_or(u64::MAX).saturating_add(new);
        if lost > MOST_LOST { Err(Fault::Unreadable) } else { Ok(()) }
    }

    fn is_after(&self, span: SpanId) -> bool {
        self.until.is_some_and(|until| span >= until)
    }

    fn event(&mut self, event: Event) -> Result<(), Fault> {
        let contents = &mut self.contents;
        match event {
            Event::Opened { state, lanes, policy, probe } => {
                contents.policy = policy;
                contents.with_lanes(state::recorded(&lanes, self.known));
                self.facts = Facts { state, probe: Some(probe), ..Facts::default() };
            }
            Event::Resumed { state, clean } => {
                self.facts.state = state;
                self.facts.resumed = self.facts.resumed.saturating_add(1);
                if !clean {
                    contents.stopped.get_or_insert(contents.length.saturating_sub(1));
                }
            }
            Event::Closed => {}
            Event::Limited(ceiling) => self.facts.ceiling = ceiling,
            Event::Externalized(span) => self.externalized(span)?,
            Event::Evicted(tombstone) => self.evicted(&tombstone)?,
            Event::Pointed(edit) => {
                if let Some(span) = contents.pointers.misses(&edit, contents.table.len()) {
                    return Err(Fault::Contradicts {
                        span,
                        what: "a pointer that is not there goes, or covers nothing",
                    });
                }
                contents.repoint(edit);
            }
            Event::Summarized { summary, sources, depth, escalation } => {
                self.summarized(&summary, Derivation { sources, depth }, escalation)?;
            }
            Event::Regrounded { summary, sources } => self.regrounded(summary, &sources)?,
            Event::Restored { span } => {
                self.is(span, Residency::Evicted, "it comes back, and was no pointer")?;
                self.contents.back(span);
            }
            Event::Discarded { span, mutation } => {
                self.discarded(&span)?;
                self.contents.remove(span.span, &mutation);
            }
            Event::Redacted { spans, mutations, .. } => {
                for (at, span) in spans.iter().enumerate() {
                    self.row(*span)?;
                    let mutation = mutations.get(at).ok_or(Fault::Contradicts {
                        span: *span,
                        what: "it was removed for good, and no reason is given",
                    })?;
                    self.contents.remove(*span, mutation);
                }
            }
            Event::PolicyChanged(policy) => contents.under(policy),
            Event::Migrated { lanes, to, .. } => {
                let lanes = state::recorded(&lanes, self.known);
                let known = |(lane, to): (usize, &Option<u16>)| match to {
                    Some(to) => usize::from(*to) < lanes.len(),
                    None => contents.spans_in(lane) == 0,
                };
                if to.len() != contents.lanes.len() || !to.iter().enumerate().all(known) {
                    return Err(Fault::Unknown { what: "lane" });
                }
                contents.migrate(lanes, &to);
            }
            // What actions there were is for the audit: whether one was done, the store's claims say.
            Event::Intended(record) => {
                let lanes = &self.contents.lanes;
                if record.requires.iter().any(|lane| usize::from(*lane) >= lanes.len()) {
                    return Err(Fault::Unknown { what: "lane" });
                }
                record.evidence.iter().chain(&record.consent).try_for_each(|span| self.row(*span).map(|_| ()))?;
                let intent = Intent { about: record.about, ..self.intent(record.action, record.repeats) };
                self.contents.unsettled.insert((record.signature, record.attempt), (intent, None));
            }
            Event::Ended { signature, action, attempt, ending } => {
                self.contents.unsettled.remove(&(signature, attempt));
                if let Ending::Done { sha256, .. } = ending {
                    self.facts.outcomes.push((sha256, action, attempt));
                }
            }
            Event::Doubted { signature, action, attempt, why } => {
                let intent = self.intent(action, None);
                let (_, because) = self.contents.unsettled.entry((signature, attempt)).or_insert((intent, None));
                *because = Some(why);
            }
            Event::Booked { note, written } => {
                self.contents.ledger.replay(&note);
                self.written.extend(written);
            }
            Event::Abandoned { result, .. } => self.abandoned(&result)?,
        }
        Ok(())
    }

    /// The intent that the record at hand is of.
    fn intent(&self, action: String, repeats: Option<String>) -> Intent {
        let Contents { episode, length, .. } = &self.contents;
        Intent {
            episode: episode.clone(),
            record: length.saturating_sub(1),
            time: self.time,
            action,
            repeats,
            about: None,
        }
    }

    fn row(&self, span: SpanId) -> Result<&Row, Fault> {
        self.contents.table.get(span).ok_or(Fault::NoSpan { span })
    }

    fn is(&self, span: SpanId, wanted: Residency, what: &'static str) -> Result<&Row, Fault> {
        let row = self.row(span)?;
        if row.residency == wanted { Ok(row) } else { Err(Fault::Contradicts { span, what }) }
    }

    /// A span that a commit brought.
    fn externalized(&mut self, record: SpanRecord) -> Result<(), Fault> {
        match record.sha256 {
            None => Err(Fault::Contradicts { span: record.span, what: "it has no digest" }),
            Some(_) if self.is_again(&record)? => Ok(()),
            Some(_) => self.entered(&record, true),
        }
    }

    /// A span that was removed before a commit brought it.
    fn discarded(&mut self, record: &SpanRecord) -> Result<(), Fault> {
        if self.is_again(record)? { Ok(()) } else { self.entered(record, false) }
    }

    /// Whether a span is on record already, as it is when its text was committed and not read back.
    fn is_again(&self, record: &SpanRecord) -> Result<bool, Fault> {
        let SpanRecord { span, start, sha256, .. } = record;
        match self.contents.table.get(*span).filter(|row| row.residency != Residency::Unrecorded) {
            None => Ok(false),
            Some(row) if row.durable && row.start == *start && sha256.is_none_or(|sha256| sha256 == row.digest) => {
                Ok(true)
            }
            Some(_) => Err(Fault::Contradicts { span: *span, what: "it is recorded twice, and not the same" }),
        }
    }

    /// A row for a span, in its place.
    fn entered(&mut self, record: &SpanRecord, durable: bool) -> Result<(), Fault> {
        let (span, row) = (record.span, self.as_row(record, durable)?);
        if span.number() > self.entered {
            return Err(Fault::NoSpan { span });
        }
        if row.start < self.contents.ends_before(span) {
            return Err(Fault::Contradicts { span, what: "it begins before the span before it ends" });
        }
        self.contents.enter_at(span, row);
        if record.failed {
            self.contents.failed.insert(span);
        }
        if let Some(wire) = &record.wire {
            self.contents.wires.enter(span, wire.clone());
        }
        if !self.written.contains(&span) {
            self.contents.newest = self.contents.newest.max(record.end());
        }
        if record.part != Part::None {
            self.parts.insert(span, record.part.clone());
        }
        if record.part.seal() == Some(true) {
            self.contents.seals.enter(span);
        }
        if let Some(subject) = &record.reads {
            self.contents.observed(span, subject.clone());
        }
        Ok(())
    }

    /// What stands for the result of a call is the next span, and says whose.
    fn abandoned(&mut self, record: &SpanRecord) -> Result<(), Fault> {
        let span = record.span;
        if span != self.contents.table.next_id() || !matches!(record.part, Part::Lost(..)) || record.sha256.is_none() {
            return Err(Fault::Contradicts { span, what: "a call was abandoned, and this is not what stands for it" });
        }
        self.entered = self.entered.max(span.number());
        self.entered(record, true)
    }

    fn as_row(&self, record: &SpanRecord, durable: bool) -> Result<Row, Fault> {
        if record.span.number() == 0 {
            return Err(Fault::NoSpan { span: record.span });
        }
        self.contents.lane(record.lane).ok_or(Fault::Unknown { what: "lane" })?;
        if record.name.is_some_and(|name| self.contents.names.get(name).is_none()) {
            return Err(Fault::Unknown { what: "tool name" });
        }
        Ok(Row {
            content: None,
            digest: record.sha256.unwrap_or(Digest::from_bytes([0; 32])),
            start: record.start,
            tokens: record.tokens,
            name: record.name,
            lane: record.lane,
            certainty: record.certainty,
            origin: record.origin,
            role: record.role,
            residency: Residency::Resident,
            durable,
            offered: durable,
            text: record.text,
            exchange: record.part.is_of_exchange(),
        })
    }

    /// A tombstone says of its span what the span's own record said (rule R7).
    fn evicted(&mut self, tombstone: &TombstoneRecord) -> Result<(), Fault> {
        let span = tombstone.span;
        let row = self.row(span)?;
        let contradicts = |what| Err(Fault::Contradicts { span, what });
        if !row.durable {
            return contradicts("it left before the store had it");
        }
        let TombstoneRecord { sha256, start, end, lane, name, .. } = *tombstone;
        if (sha256, start, end, lane, name) != (row.digest, row.start, row.end(), row.lane, row.name) {
            return contradicts("its tombstone is of another text, place, lane or tool");
        }
        if self.contents.class(lane) == Class::Kept {
            return contradicts("it left a lane whose spans never leave");
        }
        if tombstone.policy != self.contents.policies {
            return contradicts("its tombstone names a policy that was not in force");
        }
        if tombstone.derivation != self.contents.chain(span) {
            return Err(Fault::Provenance { span, what: "its tombstone names other sources than it was made of" });
        }
        match (row.residency, tombstone.replaced_by) {
            (Residency::Resident, None) => self.contents.leave(span, Residency::Evicted),
            (Residency::Replaced | Residency::Retired, Some(by)) if self.replaced(span, by) => {
                self.owed.remove(&span);
            }
            // A summary whose sources came back.
            (Residency::Retired, None) => {}
            _ => return contradicts("its tombstone does not fit where it was"),
        }
        Ok(())
    }

    fn replaced(&self, span: SpanId, by: SpanId) -> bool {
        self.contents.derivations.get(&by).is_some_and(|derivation| derivation.sources.contains(&span))
    }

    /// A summary names sources that are there, and its true depth (rules R4 to R6).
    fn summarized(
        &mut self,
        record: &SpanRecord,
        derivation: Derivation,
        escalation: Option<String>,
    ) -> Result<(), Fault> {
        let span = record.span;
        let fault = |what| Err(Fault::Provenance { span, what });
        let contents = &self.contents;
        if span != contents.table.next_id() || record.sha256.is_none() {
            return fault("it is not the next span, or has no digest");
        }
        let kind = |lane| contents.lane(lane).map(LaneSpec::kind);
        if kind(record.lane) != Some(Derived::ID) {
            return fault("it is in a lane that holds no summaries");
        }
        let wanted = if escalation.is_some() { Derived::ID } else { Evictable::ID };
        let (mut tokens, mut deepest) = (0_u64, 0);
        for source in &derivation.sources {
            let row =
                self.is(*source, Residency::Resident, "a summary takes its place, and it was not in the window")?;
            if !row.durable || kind(row.lane) != Some(wanted) {
                return fault("a source is not in the store, or in a lane that no summary replaces");
            }
            tokens = tokens.saturating_add(u64::from(row.tokens));
            deepest = deepest.max(contents.derivations.get(source).map_or(0, |derivation| derivation.depth));
        }
        if derivation.sources.is_empty() || !derivation.sources.is_sorted_by(|one, other| one < other) {
            return fault("it names no sources, or one twice");
        }
        if derivation.depth != deepest.saturating_add(1) || (derivation.depth > 1) != escalation.is_some() {
            return fault("its depth is not one more than that of its sources");
        }
        if u64::from(record.tokens) >= tokens {
            return fault("it is no smaller than its sources");
        }
        let row = self.as_row(record, true)?;
        self.owed.extend(&derivation.sources);
        self.contents.replace(row, derivation);
        if let Some(reason) = escalation {
            self.contents.escalated(span, &reason);
        }
        Ok(())
    }

    fn regrounded(&mut self, summary: SpanId, sources: &[SpanId]) -> Result<(), Fault> {
        let row = self.row(summary)?;
        if !matches!(row.residency, Residency::Resident | Residency::Evicted | Residency::Discarded) {
            return Err(Fault::Contradicts {
                span: summary,
                what: "its sources come back, and it was not in the window",
            });
        }
        if sources.is_empty() || self.contents.roots(summary) != sources {
            return Err(Fault::Provenance { span: summary, what: "its sources are not those that came back" });
        }
        self.contents.retire(summary);
        for source in sources {
            self.contents.back(*source);
        }
        Ok(())
    }

    /// Checks the whole, and gives the window.
    pub(crate) fn finish(mut self) -> Result<Replayed, JournalError> {
        self.settle()?;
        Ok(self.replayed())
    }

    /// Checks the whole: what can only be seen at the end.
    pub(crate) fn settle(&mut self) -> Result<(), JournalError> {
        let episode = self.contents.episode.clone();
        if self.contents.length == 0 {
            return Err(JournalError::NoEpisode { episode });
        }
        let done = self.related().and_then(|()| match self.contents.unpointed() {
            None => Ok(()),
            Some(span) => {
                Err(Fault::Contradicts { span, what: "it left, and no pointer stands in its place; or the reverse" })
            }
        });
        done.map_err(|fault| JournalError::Whole { episode, fault })
    }

    /// The window, as far as the log was read.
    pub(crate) fn replayed(self) -> Replayed {
        let Self { mut contents, facts, removed, .. } = self;
        for (span, mutation) in &removed {
            // A pointer of then tells nothing that must not be kept.
            if contents.table.get(*span).is_some_and(Row::is_resident) {
                contents.remove(*span, mutation);
            }
        }
        Replayed { contents, facts }
    }

    /// Exchanges, in the order in which their spans entered, which need not be that of their records.
    fn related(&mut self) -> Result<(), Fault> {
        let Self { contents, parts, .. } = self;
        for (span, part) in std::mem::take(parts) {
            if contents.exchanges.takes(&part).is_err() {
                // Its call may have been lost with the process; without a gap nothing is.
                let gap = |(id, row): (SpanId, &Row)| id < span && row.residency == Residency::Unrecorded;
                if !contents.table.iter().any(gap) {
                    return Err(Fault::Contradicts { span, what: "it is the result of a call that nobody made" });
                }
                if let Some(row) = contents.table.get_mut(span) {
                    row.exchange = false;
                }
                continue;
            }
            contents.exchanges.enter(span, part);
        }
        Ok(())
    }
}

/// An episode that only reads, so the policy is whatever the log says.
pub(crate) fn reader(episode: &EpisodeId) -> Episode {
    Episode { id: episode.clone(), ..Episode::new("", "") }
}
