//! What a window holds between two commits: spans, pointers, summaries, and how many tokens they take.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{Display, Write as _},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{
    candidates::Class,
    gone::{Gone, Lossy},
    pointers::{Edit, Pointers},
    reads::Reads,
    recorded::Names,
    relations::{Exchanges, OpenCall},
    seals::Seals,
    table::{Entry, Residency, Table},
};
use crate::{
    Budget, CachePrice, Certainty, CommitError, CounterError, Digest, Episode, EpisodeId, LaneSpec, NewSpan,
    PolicyVersion, PushError, SelectionError, SpanId, TokenCount, TokenCounter, Tombstone,
    accounting::Ledger,
    action::Intent,
    journal::{self, Event, TombstoneRecord},
    kind::{Derived, Kind},
    pointer::{Fold, Line},
    wire::Wires,
};

/// Whether a commit is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Commit {
    Idle,
    Running,
    /// It was cancelled, or its answer was lost: only the store knows.
    Interrupted,
}

/// A window in one state: ids of spans are the same in every window, so what was decided on them names this too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Tells the windows of a process apart.
    pub(crate) window: u64,
    pub(crate) changes: u64,
}

static WINDOWS: AtomicU64 = AtomicU64::new(0);

#[derive(Debug)]
pub struct Contents {
    pub(crate) window: u64,
    /// Changes where spans get other numbers: what was cited by the old ones would name others.
    pub(crate) numbering: u64,
    pub(crate) episode: EpisodeId,
    pub(crate) policy: PolicyVersion,
    /// How many policy versions were in force before this one.
    pub(crate) policies: u32,
    pub(crate) lanes: &'static [LaneSpec],
    pub(crate) budget: Option<Budget>,
    /// Records that the store has of this episode.
    pub(crate) length: u64,
    /// What the next record goes on from.
    pub(crate) chain: Digest,
    pub(crate) commit: Commit,
    /// What the records end with that were committed since the store answered last: a late one is this window's own.
    pub(crate) unanswered: Vec<Digest>,
    pub(crate) table: Table,
    /// Pushed and not yet in the store.
    pub(crate) fresh: Vec<SpanId>,
    pub(crate) pushed_tokens: u64,
    /// Where the span that was pushed last ends: what pruning itself writes makes nothing older (rule R24).
    pub(crate) newest: u64,
    pub(crate) utilization: u64,
    pub(crate) certainty: Certainty,
    pub(crate) pointers: Pointers,
    pub(crate) derivations: BTreeMap<SpanId, Derivation>,
    /// The summary that is shown at the place of its first source.
    pub(crate) anchors: BTreeMap<SpanId, SpanId>,
    /// What was removed for good.
    pub(crate) gone: BTreeMap<SpanId, Gone>,
    /// The record since which a process may have lost what it had not committed.
    pub(crate) stopped: Option<u64>,
    /// Spans that entered and that no record has.
    pub(crate) gaps: BTreeSet<SpanId>,
    /// How often a model recalled a span whose text was not in the window.
    pub(crate) recalls: BTreeMap<SpanId, u32>,
    pub(crate) lossy: Option<Lossy>,
    pub(crate) exchanges: Exchanges,
    /// Results of calls that failed.
    pub(crate) failed: BTreeSet<SpanId>,
    pub(crate) ledger: Ledger,
    pub(crate) trusts_estimates: bool,
    pub(crate) cache: Option<CachePrice>,
    /// Grows with every change of what the window shows, and of its policy.
    pub(crate) changes: u64,
    /// Grows with those of them that do more than add a span at the end.
    pub(crate) edits: u64,
    /// What spans observed, and which superseded which.
    pub(crate) reads: Reads,
    pub(crate) seals: Seals,
    pub(crate) wires: Wires,
    /// The most that deciding may cost, where the struct's policy says.
    pub(crate) max_decision: Option<u64>,
    /// What a candidate's line in an index usually takes, in tokens.
    pub(crate) line_price: u64,
    /// What a pointer that stands alone usually takes, in tokens: a candidate is larger. It stays what it was, so that the
    /// same lanes named again name nothing new (rule R24).
    pub(crate) pointer_price: u64,
    /// What the id of a protected span usually takes in a pointer that it shares, in tokens.
    pub(crate) name_price: u64,
    pub(crate) classes: Box<[Class]>,
    pub(crate) names: Names,
    /// The spans of each lane that is protected or of instructions, ascending: what pointers name, and what an action requires
    /// is asked before each (rules R8, R17).
    pub(crate) protected: BTreeMap<u16, Vec<SpanId>>,
    /// Attempts of this episode that its log has no ending of, each with why that is, where it is known.
    pub(crate) unsettled: BTreeMap<(Digest, u64), (Intent, Option<String>)>,
}

/// Where a summary comes from (rule R5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Derivation {
    pub(crate) sources: Vec<SpanId>,
    pub(crate) depth: u32,
}

impl Derivation {
    /// The spans it stands for, ascending; never empty, each resolvable by [`Window::recall`](crate::Window::recall).
    pub fn sources(&self) -> &[SpanId] {
        &self.sources
    }

    /// 1 for a summary of first-hand spans; more only through an [`Escalation`](crate::Escalation).
    pub fn depth(&self) -> u32 {
        self.depth
    }
}

impl Contents {
    pub(crate) fn new(episode: Episode, lanes: &'static [LaneSpec], budget: Option<Budget>) -> Self {
        let chain = journal::beginning(&episode.id);
        Self {
            window: Self::another(),
            numbering: Self::another(),
            ledger: Ledger::new(episode.id.clone(), budget, 0),
            episode: episode.id,
            policy: episode.policy,
            policies: 0,
            lanes,
            budget,
            length: 0,
            chain,
            commit: Commit::Idle,
            unanswered: Vec::new(),
            table: Table::default(),
            fresh: Vec::new(),
            pushed_tokens: 0,
            newest: 0,
            utilization: 0,
            certainty: Certainty::Exact,
            pointers: Pointers::default(),
            derivations: BTreeMap::new(),
            anchors: BTreeMap::new(),
            gone: BTreeMap::new(),
            stopped: None,
            gaps: BTreeSet::new(),
            recalls: BTreeMap::new(),
            lossy: None,
            exchanges: Exchanges::default(),
            failed: BTreeSet::new(),
            reads: Reads::default(),
            seals: Seals::default(),
            wires: Wires::default(),
            trusts_estimates: episode.trusts_estimates,
            cache: None,
            changes: 0,
            edits: 0,
            max_decision: None,
            line_price: 1,
            pointer_price: 1,
            name_price: 1,
            classes: lanes.iter().map(Class::of).collect(),
            names: Names::default(),
            protected: BTreeMap::new(),
            unsettled: BTreeMap::new(),
        }
    }

    /// Whether no commit of this window is under way or in doubt.
    pub(crate) fn is_idle(&self) -> Result<(), CommitError> {
        let episode = || self.episode.clone();
        match self.commit {
            Commit::Idle => Ok(()),
            Commit::Running => Err(CommitError::Busy { episode: episode() }),
            Commit::Interrupted => Err(CommitError::Interrupted { episode: episode() }),
        }
    }

    /// A number that nothing of this process has had.
    pub(crate) fn another() -> u64 {
        WINDOWS.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn moment(&self) -> Moment {
        Moment { window: self.window, changes: self.changes }
    }

    /// More than a span was added.
    pub(crate) fn edited(&mut self) {
        self.changes = self.changes.saturating_add(1);
        self.edits = self.edits.saturating_add(1);
    }

    pub(crate) fn lane(&self, index: u16) -> Option<&'static LaneSpec> {
        self.lanes.get(usize::from(index))
    }

    pub(crate) fn lane_name(&self, entry: &Entry) -> &'static str {
        self.lane(entry.lane).map_or("?", LaneSpec::name)
    }

    pub(crate) fn name(&self, entry: &Entry) -> Option<&Arc<str>> {
        self.names.get(entry.name?)
    }

    /// Takes a counted span in. The only way text enters a window.
    pub(crate) fn push(&mut self, lane: u16, mut span: NewSpan, count: TokenCount) -> Result<SpanId, PushError> {
        // A summary without sources is none, whatever the handle's type says (rule R5).
        let spec = self.lane(lane).filter(|lane| lane.kind() != Derived::ID).ok_or(PushError::NoLane)?;
        if self.commit == Commit::Running {
            return Err(PushError::Busy { lane: spec.name() });
        }
        if span.content.as_bytes().is_empty() {
            return Err(PushError::Empty { lane: spec.name() });
        }
        let tokens = u64::from(count.tokens());
        if let Some(budget) = self.budget.map(Budget::room).filter(|budget| tokens > *budget) {
            return Err(PushError::LargerThanBudget { lane: spec.name(), tokens, budget });
        }
        let part = span.placed().ok_or(PushError::NotSaid { lane: spec.name() })?;
        self.exchanges.takes(&part).map_err(|call| PushError::Unasked { lane: spec.name(), call })?;
        let name = span.name.map(|name| self.names.intern(name)).transpose()?;
        let id = self.enter(Entry {
            text: span.content.is_text(),
            content: Some(span.content),
            digest: Digest::from_bytes([0; 32]),
            start: self.pushed_tokens,
            tokens: count.tokens(),
            name,
            lane,
            certainty: count.certainty(),
            origin: span.origin,
            role: span.role,
            residency: Residency::Resident,
            durable: false,
            offered: false,
            exchange: part.is_of_exchange(),
        });
        self.newest = self.pushed_tokens;
        if part.seal() == Some(true) {
            self.seals.enter(id);
        }
        if span.failed {
            self.failed.insert(id);
        }
        self.exchanges.enter(id, part);
        if let Some(wire) = span.wire {
            self.wires.enter(id, wire);
        }
        // A failed read supersedes nothing.
        if let Some(subject) = span.reads.filter(|_| !span.failed) {
            self.observed(id, subject);
        }
        self.fresh.push(id);
        Ok(id)
    }

    /// Adds an entry and its tokens.
    pub(crate) fn enter(&mut self, entry: Entry) -> SpanId {
        self.changes = self.changes.saturating_add(1);
        self.pushed_tokens = entry.end();
        self.utilization = self.utilization.saturating_add(u64::from(entry.tokens));
        self.certainty = self.certainty.max(entry.certainty);
        let lane = entry.lane;
        let span = self.table.push(entry);
        self.keep_in_mind(span, lane);
        span
    }

    /// Notes that a lane which is protected, or of instructions, has a span.
    pub(crate) fn keep_in_mind(&mut self, span: SpanId, lane: u16) {
        if self.class(lane) >= Class::Protected {
            let spans = self.protected.entry(lane).or_default();
            // Nearly always the newest.
            match spans.last() {
                Some(last) if *last >= span => {
                    if let Err(at) = spans.binary_search(&span) {
                        spans.insert(at, span);
                    }
                }
                _ => spans.push(span),
            }
        }
    }

    /// The spans of a selection, ascending, each `wanted` and in `lane`. O(selected · log selected).
    pub(crate) fn select(&self, ids: &[SpanId], lane: u16, wanted: Residency) -> Result<Vec<SpanId>, SelectionError> {
        for span in ids {
            self.in_lane(*span, self.entry(*span)?, lane)?;
        }
        self.of_any_lane(ids, wanted)
    }

    /// The spans of a selection, ascending, each `wanted`.
    pub(crate) fn of_any_lane(&self, ids: &[SpanId], wanted: Residency) -> Result<Vec<SpanId>, SelectionError> {
        if ids.is_empty() {
            return Err(SelectionError::Empty);
        }
        let mut sorted = ids.to_vec();
        sorted.sort_unstable();
        if let Some(span) = repeated(&sorted) {
            return Err(SelectionError::Twice { span });
        }
        for &span in &sorted {
            let entry = self.entry(span)?;
            self.in_state(span, entry, wanted)?;
            self.not_pending(span, entry)?;
        }
        Ok(sorted)
    }

    pub(crate) fn in_lane(&self, span: SpanId, entry: &Entry, lane: u16) -> Result<(), SelectionError> {
        let spec = |index| self.lane(index).map_or("?", LaneSpec::name);
        match entry.residency {
            Residency::Unrecorded => return Err(SelectionError::Unrecorded { span }),
            _ if entry.lane == lane => return Ok(()),
            _ => {}
        }
        Err(SelectionError::OtherLane { span, lane: spec(lane), actual: spec(entry.lane) })
    }

    /// Whether every call of the span's exchange has its result (rule R16).
    pub(crate) fn not_pending(&self, span: SpanId, entry: &Entry) -> Result<(), SelectionError> {
        if !entry.exchange || !self.exchanges.is_pending(span) {
            return Ok(());
        }
        match self.waits_for(span) {
            Some(OpenCall { span: turn, call, age }) => Err(SelectionError::Pending { span, turn, call, age }),
            None => Ok(()),
        }
    }

    /// Whether the lane is declared with kind `K`: what the types hold already, held again by the declaration itself.
    pub(crate) fn is_lane_of<K: Kind>(&self, lane: u16) -> Result<(), SelectionError> {
        let declared = self.lane(lane).map(|lane| (lane.name(), lane.kind()));
        match declared {
            Some((_, kind)) if kind == K::ID => Ok(()),
            declared => Err(SelectionError::Forbidden { lane: declared.map_or("?", |(name, _)| name) }),
        }
    }

    pub(crate) fn entry(&self, span: SpanId) -> Result<&Entry, SelectionError> {
        self.table.get(span).ok_or(SelectionError::Unknown { span, spans: self.table.len() })
    }

    pub(crate) fn in_state(&self, span: SpanId, entry: &Entry, wanted: Residency) -> Result<(), SelectionError> {
        match (wanted, entry.residency) {
            (wanted, found) if wanted == found => Ok(()),
            (_, Residency::Resident) => Err(SelectionError::Resident { span }),
            (_, Residency::Evicted) => Err(SelectionError::AlreadyEvicted { span }),
            (_, Residency::Replaced) => Err(SelectionError::Replaced { span }),
            (_, Residency::Discarded) => Err(SelectionError::Discarded { span }),
            (_, Residency::Retired) => Err(SelectionError::Retired { span }),
            (_, Residency::Unrecorded) => Err(SelectionError::Unrecorded { span }),
        }
    }

    /// The tombstone of a span that is in the store.
    pub(crate) fn tombstone(&self, span: SpanId, score: Option<f64>, replaced_by: Option<SpanId>) -> Option<Tombstone> {
        let entry = self.table.get(span).filter(|entry| entry.durable)?;
        let spec = self.lane(entry.lane)?;
        let record = TombstoneRecord {
            span,
            lane: entry.lane,
            name: entry.name,
            start: entry.start,
            end: entry.end(),
            policy: self.policies,
            score,
            sha256: entry.digest,
            derivation: self.chain(span),
            replaced_by,
        };
        Some(record.named(spec.name(), spec.kind(), self.name(entry).cloned(), self.policy.clone()))
    }

    /// The derivation chain of a summary: its sources, then theirs, down to first-hand spans.
    pub(crate) fn chain(&self, span: SpanId) -> Vec<SpanId> {
        let mut chain = Vec::new();
        // Most spans are first-hand, and this is asked for every tombstone.
        if !self.derivations.contains_key(&span) {
            return chain;
        }
        let mut open = vec![span];
        while let Some(derivation) = open.pop().and_then(|id| self.derivations.get(&id)) {
            chain.extend(&derivation.sources);
            open.extend(derivation.sources.iter().filter(|id| self.derivations.contains_key(id)));
        }
        chain
    }

    /// The first-hand spans under a summary, ascending.
    pub(crate) fn roots(&self, span: SpanId) -> Vec<SpanId> {
        let mut roots = self.chain(span);
        roots.retain(|id| !self.derivations.contains_key(id));
        roots.sort_unstable();
        roots.dedup();
        roots
    }

    /// The summary that took the place of a span, and of any other summary of it: the newest. O(summaries).
    pub(crate) fn summary_of(&self, span: SpanId) -> SpanId {
        let of = |summary: &&SpanId| self.chain(**summary).contains(&span);
        self.derivations.keys().rev().find(of).copied().unwrap_or(span)
    }

    /// Shows a summary at the place of its first source.
    pub(crate) fn anchor(&mut self, summary: SpanId) {
        if let Some(first) = self.roots(summary).first() {
            self.anchors.insert(*first, summary);
        }
    }

    /// Shows a summary no more; nothing happens for a first-hand span.
    pub(crate) fn unanchor(&mut self, summary: SpanId) {
        if let Some(first) = self.roots(summary).first() {
            self.anchors.remove(first);
        }
    }

    /// The span under which the store has, or may have, this one's bytes: itself, or one with the same text. O(window),
    /// for the rare question before a discard.
    pub(crate) fn in_store(&self, span: SpanId, entry: &Entry) -> Option<SpanId> {
        if entry.durable || entry.offered {
            return Some(span);
        }
        let digest = Digest::of(entry.content.as_ref()?.as_bytes());
        let same = |other: &Entry| match &other.content {
            _ if other.durable => other.digest == digest,
            content => other.offered && *content == entry.content,
        };
        self.table.iter().find(|(_, other)| same(other)).map(|(other, _)| other)
    }

    /// How many spans the line for `first` to `last` names where neighbours share it; none for a summary, which is shown
    /// elsewhere.
    pub(crate) fn named(&self, first: SpanId, last: SpanId) -> Option<usize> {
        match self.class(self.table.get(first)?.lane) {
            Class::Derived => None,
            class if first == last => Some(usize::from(class >= Class::Protected)),
            _ => Some(self.protected_among(first, last).map(|(_, spans)| spans.len()).sum()),
        }
    }

    /// The spans of protected lanes from `first` to `last`, by lane. O(lanes · log spans).
    fn protected_among(&self, first: SpanId, last: SpanId) -> impl Iterator<Item = (&'static str, &[SpanId])> {
        self.protected.iter().filter_map(move |(lane, spans)| {
            let from = spans.partition_point(|span| *span < first);
            let to = spans.partition_point(|span| *span <= last);
            let spans = spans.get(from..to).filter(|spans| !spans.is_empty())?;
            Some((self.lane(*lane)?.name(), spans))
        })
    }

    /// The line that stands for the evicted spans `first` to `last`.
    pub(crate) fn pointer_text(&self, first: SpanId, last: SpanId) -> String {
        let (Some(start), Some(end)) = (self.table.get(first), self.table.get(last)) else {
            return String::new();
        };
        if first == last {
            let sources = self.derivations.get(&first).map_or(&[][..], |derivation| &derivation.sources);
            return worded(Line {
                span: first,
                lane: self.lane_name(start),
                name: self.name(start).map(AsRef::as_ref),
                tokens: u64::from(start.tokens),
                digest: start.digest,
                sources,
            });
        }
        let spans = last.number().saturating_sub(first.number()).saturating_add(1);
        let tokens = end.end().saturating_sub(start.start);
        worded(Fold { first, last, spans, tokens, named: self.protected_among(first, last).collect() })
    }

    /// Prices what passes are expected to cost before any was measured. A counter that fails here is asked again later.
    pub(crate) fn expect(&mut self, counter: &dyn TokenCounter) {
        let lane = self.lanes.iter().map(LaneSpec::name).max_by_key(|name| name.len()).unwrap_or_default();
        let span = SpanId::mint(10_000);
        let digest = Digest::from_bytes([0xA5; 32]);
        let pointer = Line { span, lane, name: Some("read_file"), tokens: 10_000, digest, sources: &[] }.to_string();
        let line = Self::usual_line(lane);
        let name = format!(" {span}");
        let [pointer, line, name] = [pointer, line, name].map(|text| {
            let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
            counter.text(&text).map_or(bytes, |count| u64::from(count.tokens()))
        });
        self.ledger = Ledger::new(self.episode.clone(), self.budget, pointer);
        (self.line_price, self.pointer_price, self.name_price) = (line.max(1), pointer.max(1), name.max(1));
    }

    /// Prices a pointer with the window's own counter (rule R25).
    pub(crate) fn price<'a>(
        &'a self,
        counter: &'a dyn TokenCounter,
    ) -> impl Fn(SpanId, SpanId) -> Result<TokenCount, CounterError> + 'a {
        |first, last| counter.text(&self.pointer_text(first, last))
    }

    /// Takes a span's text out; the pointer or summary that stands in its place is in the store already.
    pub(crate) fn leave(&mut self, span: SpanId, residency: Residency) {
        self.edited();
        self.unseal(span);
        if let Some((entry, was_resident)) = self.table.move_to(span, residency) {
            entry.content = None;
            if was_resident {
                self.utilization = self.utilization.saturating_sub(u64::from(entry.tokens));
            }
        }
    }

    /// Puts spans' texts back in their places; for what was removed for good, the notice that says so.
    pub(crate) fn come_back(&mut self, spans: &[SpanId], texts: Vec<Vec<u8>>) {
        let mut texts = texts.into_iter();
        for &span in spans {
            self.back(span);
            if let Some(entry) = self.table.get_mut(span).filter(|entry| entry.is_resident()) {
                entry.content = texts.next().map(|bytes| super::step::content(bytes, entry.text));
            }
        }
    }

    /// A span takes its place again.
    pub(crate) fn back(&mut self, span: SpanId) {
        self.edited();
        self.unseal(span);
        self.reads.came_back(span);
        let notice = self.gone.get(&span).map(|gone| u64::from(gone.count.tokens()));
        let residency = if notice.is_some() { Residency::Discarded } else { Residency::Resident };
        if let Some((entry, _)) = self.table.move_to(span, residency) {
            let tokens = notice.unwrap_or(u64::from(entry.tokens));
            self.utilization = self.utilization.saturating_add(tokens);
        }
    }

    /// Where the texts of spans that come back are in the store.
    pub(crate) fn digests(&self, spans: &[SpanId]) -> Vec<Digest> {
        let kept = spans.iter().filter(|span| !self.gone.contains_key(span));
        kept.filter_map(|span| Some(self.table.get(*span)?.digest)).collect()
    }

    /// What spans that come back take, in tokens.
    pub(crate) fn tokens_back(&self, spans: &[SpanId]) -> u64 {
        let tokens = |span: &SpanId| match self.gone.get(span) {
            Some(gone) => u64::from(gone.count.tokens()),
            None => self.table.get(*span).map_or(0, |entry| u64::from(entry.tokens)),
        };
        spans.iter().map(tokens).fold(0, u64::saturating_add)
    }

    /// A summary takes the place of its sources.
    pub(crate) fn replace(&mut self, entry: Entry, derivation: Derivation) -> SpanId {
        let residency = if derivation.depth > 1 { Residency::Retired } else { Residency::Replaced };
        for source in &derivation.sources {
            self.leave(*source, residency);
            self.unanchor(*source);
        }
        let span = self.enter(entry);
        self.derivations.insert(span, derivation);
        self.anchor(span);
        span
    }

    /// The first-hand sources of a summary, and what is recorded when they take its place (rule R4).
    pub(crate) fn regrounding(&self, summary: SpanId) -> Result<(Vec<SpanId>, [Event; 2]), SelectionError> {
        let sources = self.roots(summary);
        let tombstone = self.tombstone(summary, None, None);
        let tombstone = tombstone.ok_or(SelectionError::NotExternalized { span: summary })?;
        Ok((sources.clone(), [Event::Regrounded { summary, sources }, Event::Evicted(tombstone.record().clone())]))
    }

    /// Takes a summary out whose sources come back, or the notice that stands in its place.
    pub(crate) fn retire(&mut self, summary: SpanId) {
        if self.table.get(summary).is_some_and(|entry| entry.residency == Residency::Discarded) {
            self.utilization = self.utilization.saturating_sub(self.tokens_back(&[summary]));
        }
        self.leave(summary, Residency::Retired);
        self.unanchor(summary);
    }

    pub(crate) fn repoint(&mut self, edit: Edit) {
        self.certainty = self.certainty.max(edit.certainty);
        let (gone, come) = self.pointers.apply(edit);
        self.utilization = self.utilization.saturating_sub(gone).saturating_add(come);
    }
}

/// A line as a text, whose bytes are reserved at once.
fn worded(line: impl Display) -> String {
    let mut text = String::with_capacity(128);
    // Writing to a `String` never fails.
    let _ = write!(text, "{line}");
    text
}

/// The first of `spans`, ascending, that is there twice.
pub(crate) fn repeated(spans: &[SpanId]) -> Option<SpanId> {
    spans.windows(2).find_map(|pair| match pair {
        [one, other] if one == other => Some(*one),
        _ => None,
    })
}
