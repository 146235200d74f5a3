//! A whole episode, read back.

use super::{Happening, LogEntry, SpanFacts, Standing};
use crate::{
    Accounting, ByteEstimate, EpisodeId, Fidelity, JournalError, Message, Origin, PolicyVersion, ResumeError, Role,
    SpanId, Tombstone,
    journal::{Facts, Replay, Tables, reader, walk},
    kind::{Derived, Kind as _, Rationale},
    store::Store,
    window::{at_once, contents::Contents, fidelity, table::Residency},
};

/// An episode as its log has it. Ids, counts and reasons; texts stay in the store. Takes some 300 bytes a span.
#[derive(Debug)]
pub struct History {
    episode: EpisodeId,
    contents: Contents,
    facts: Facts,
    entries: Vec<LogEntry>,
    spans: Vec<SpanFacts>,
    turns: Vec<SpanId>,
}

/// The window at one turn of the model.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AtTurn {
    /// The turn, from 1.
    pub turn: u64,
    /// What the model said then.
    pub answer: SpanId,
    /// What it was sent for that, in order.
    pub messages: Vec<Message>,
    /// What that took, in tokens, without the budget's fixed part.
    pub utilization: u64,
    /// The policy in force.
    pub policy: PolicyVersion,
}

/// Why a question to the record has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// The log does not check out.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// No such turn.
    #[error("turn {turn} is not in the record: turns are numbered from 1, and the model had {turns}")]
    NoTurn {
        /// The turn.
        turn: u64,
        /// How many there are.
        turns: u64,
    },
    /// A text of that window cannot be read.
    #[error(transparent)]
    Text(#[from] ResumeError),
}

impl History {
    /// Reads and checks an episode's log, on a store that answers at once. O(records), the texts not read.
    ///
    /// # Errors
    /// [`JournalError`] names the record that does not check out.
    pub fn read<S: Store>(store: &S, episode: &EpisodeId) -> Result<Self, JournalError> {
        at_once(async {
            let mut replay = Replay::over(Contents::new(reader(episode), &[], None), &[]);
            let (mut tables, mut entries, mut spans) = (Tables::default(), Vec::new(), Vec::new());
            walk(store, episode, |record, entry, chain| {
                replay.entry(entry.clone(), chain)?;
                tables.enter(&entry);
                let mut happenings: Vec<_> =
                    entry.notes.iter().filter_map(|note| note.event().map(Happening::Pruning)).collect();
                for event in entry.events {
                    happenings.extend(Happening::of(event?, &mut tables)?);
                }
                spans.extend(happenings.iter().filter_map(facts).cloned());
                entries.push(LogEntry {
                    record,
                    time: Some(entry.time).filter(|time| *time > 0),
                    spans: entry.spans,
                    pushed: replay.contents().pushed_tokens,
                    utilization: replay.contents().utilization,
                    happenings,
                });
                Ok(())
            })
            .await?;
            let replayed = replay.finish()?;
            spans.sort_by_key(|facts: &SpanFacts| facts.span);
            spans.dedup_by_key(|facts| facts.span);
            let goes_on = |facts: &SpanFacts| replayed.contents.exchanges.goes_on(facts.span);
            let turns = spans.iter().filter(|facts| is_turn(facts) && !goes_on(facts));
            let turns = turns.map(|facts| facts.span).collect();
            let (mut contents, facts) = (replayed.contents, replayed.facts);
            contents.ledger.accounting.limit = facts.ceiling.map_or(0, |ceiling| ceiling.limit);
            Ok(Self { episode: episode.clone(), contents, facts, entries, spans, turns })
        })
    }

    /// The episode.
    pub fn episode(&self) -> &EpisodeId {
        &self.episode
    }

    /// The name of the state struct that wrote it.
    pub fn state(&self) -> &str {
        &self.facts.state
    }

    /// Its commits, oldest first.
    pub fn entries(&self) -> &[LogEntry] {
        &self.entries
    }

    /// Its spans by id, with where each is now. A number of which nothing is recorded is in [`missing`](Self::missing).
    pub fn spans(&self) -> impl Iterator<Item = (&SpanFacts, Standing)> {
        self.spans.iter().filter_map(|facts| Some((facts, self.standing(facts.span)?)))
    }

    /// What is recorded of a span, and where it is now.
    pub fn span(&self, span: SpanId) -> Option<(&SpanFacts, Standing)> {
        let at = self.spans.binary_search_by_key(&span, |facts| facts.span).ok()?;
        Some((self.spans.get(at)?, self.standing(span)?))
    }

    /// How many spans entered, those of which nothing is recorded included.
    pub fn entered(&self) -> u64 {
        self.contents.table.len()
    }

    /// Spans that entered and whose text no commit had when a process ended.
    pub fn missing(&self) -> Vec<SpanId> {
        self.contents.gaps.iter().copied().collect()
    }

    /// The tombstones of a span, oldest first: one for each time that it left.
    pub fn tombstones(&self, span: SpanId) -> impl Iterator<Item = &Tombstone> {
        self.entries.iter().flat_map(|entry| &entry.happenings).filter_map(move |happening| match happening {
            Happening::Left(tombstone) if tombstone.span() == span => Some(tombstone),
            _ => None,
        })
    }

    /// The sources and the depth of a summary; `None` for a first-hand span (rule R5).
    pub fn derivation(&self, summary: SpanId) -> Option<&crate::Derivation> {
        self.contents.derivations.get(&summary)
    }

    /// The model's own turns: what it said, oldest first, each by its first span, summaries and rationales not counted.
    pub fn turns(&self) -> &[SpanId] {
        &self.turns
    }

    /// What the window takes now, in tokens, without the budget's fixed part.
    pub fn utilization(&self) -> u64 {
        self.contents.utilization
    }

    /// The policy in force now.
    pub fn policy(&self) -> &PolicyVersion {
        &self.contents.policy
    }

    /// Whether everything that left can be brought back.
    pub fn fidelity(&self) -> Fidelity {
        fidelity(&self.contents)
    }

    /// What pruning cost and freed.
    pub fn accounting(&self) -> &Accounting {
        &self.contents.ledger.accounting
    }

    /// How often the episode was resumed.
    pub fn resumed(&self) -> u64 {
        self.facts.resumed
    }

    /// The window as the model saw it at its turn, from 1: what was sent for that answer, rebuilt from the log, its texts
    /// verified. What was removed for good since is shown as its notice. O(records) and what was in the window.
    ///
    /// # Errors
    /// [`AuditError`]: no such turn, or a text that cannot be read.
    pub fn at_turn<S: Store>(&self, store: &S, turn: u64) -> Result<AtTurn, AuditError> {
        let turns = u64::try_from(self.turns.len()).unwrap_or(u64::MAX);
        let at = turn.checked_sub(1).and_then(|at| usize::try_from(at).ok());
        let answer = *at.and_then(|at| self.turns.get(at)).ok_or(AuditError::NoTurn { turn, turns })?;
        let contents = self.before(store, answer)?;
        let (messages, utilization, policy) = (contents.render(), contents.utilization, contents.policy);
        Ok(AtTurn { turn, answer, messages, utilization, policy })
    }

    fn before<S: Store>(&self, store: &S, span: SpanId) -> Result<Contents, AuditError> {
        at_once(async {
            let replay = Replay::over(Contents::new(reader(&self.episode), &[], None), &[]).until(span);
            let mut contents = replay.read(store).await?.contents;
            let sealed = contents.load(store, &std::collections::BTreeMap::new(), &ByteEstimate).await?;
            for (span, mutation) in &sealed {
                contents.remove(*span, mutation);
            }
            Ok(contents)
        })
    }

    fn standing(&self, span: SpanId) -> Option<Standing> {
        if let Some(gone) = self.contents.gone.get(&span) {
            return Some(Standing::Gone { reason: gone.reason.clone(), recovery: gone.recovery.clone() });
        }
        let by = || {
            let summaries = self.contents.derivations.iter().rev();
            summaries.filter(|(_, derivation)| derivation.sources().contains(&span)).map(|(by, _)| *by).next()
        };
        Some(match self.contents.table.get(span)?.residency {
            Residency::Resident => Standing::Resident,
            Residency::Evicted => Standing::Pointer,
            Residency::Replaced => Standing::Replaced { by: by()? },
            Residency::Retired => Standing::Retired,
            Residency::Unrecorded | Residency::Discarded => Standing::Unrecorded,
        })
    }
}

fn facts(happening: &Happening) -> Option<&SpanFacts> {
    match happening {
        Happening::Stored(facts)
        | Happening::Summarized { summary: facts, .. }
        | Happening::Abandoned { result: facts, .. }
        | Happening::Discarded { span: facts, .. } => Some(facts),
        _ => None,
    }
}

fn is_turn(facts: &SpanFacts) -> bool {
    let pruning = facts.kind == Derived::ID || facts.kind == Rationale::ID;
    facts.origin == Origin::Model && facts.role == Role::Assistant && !pruning
}
