//! What a window writes into its log, beside the events of a commit.

use std::{collections::BTreeMap, num::NonZeroU16, sync::Arc};

use super::{contents::Contents, table::Entry};
use crate::{
    Digest, PushError, SpanId, TokenCount, TokenCounter,
    journal::{self, Ceiling, Event, Probe, Sealed, SpanRecord, Unsealed},
};

/// Words, digits and marks that tokenizers cut in different places.
const PROBE: &str =
    "SELECT id, created_at FROM orders WHERE total >= 1234.50; -- naïve façade, 東京, 0xDEADBEEF\n\tfn main() {}";

impl Contents {
    pub(crate) fn span_record(&self, span: SpanId, entry: &Entry, sha256: Option<Digest>) -> SpanRecord {
        let bytes = entry.content.as_ref().map_or(0, |content| content.as_bytes().len());
        SpanRecord {
            span,
            lane: entry.lane,
            origin: entry.origin,
            role: entry.role,
            name: entry.name,
            start: entry.start,
            tokens: entry.tokens,
            certainty: entry.certainty,
            sha256,
            bytes: u64::try_from(bytes).unwrap_or(u64::MAX),
            text: entry.text,
            part: self.part(span),
            reads: self.reads.subject(span).cloned(),
            failed: self.failed.contains(&span),
            wire: self.wires.get(span).cloned(),
        }
    }

    /// The record of one commit, which goes on from the last; with what happened since, too small for a commit of its own.
    pub(crate) fn sealed(&self, events: &[Event]) -> Result<Sealed, postcard::Error> {
        let (names, notes) = (self.names.unwritten(), self.ledger.unwritten());
        Unsealed { time: journal::now(), spans: self.table.len(), names, notes, events }.seal(&self.chain)
    }

    /// The store has a record that [`sealed`](Self::sealed) gave.
    pub(crate) fn recorded(&mut self, chain: Digest, names: usize, notes: usize) {
        self.length = self.length.saturating_add(1);
        self.chain = chain;
        self.unanswered.clear();
        self.names.written = names;
        self.ledger.written(notes);
    }

    /// Goes on under the numbers of a window that had more names and notes than the log.
    pub(crate) fn keep_names_and_notes(&mut self, old: &Self) {
        let written = self.names.names.len();
        for name in old.names.names.get(written..).unwrap_or_default() {
            // The old window had room for them.
            let _ = self.names.intern(name.clone());
        }
        self.names.written = written;
        self.ledger.keep_unwritten(&old.ledger);
    }

    /// How many tool names and notes the next record takes along.
    pub(crate) fn taken_along(&self) -> (usize, usize) {
        (self.names.names.len(), self.ledger.unwritten().len())
    }

    pub(crate) fn ceiling(&self) -> Option<Ceiling> {
        let budget = self.budget.as_ref()?;
        Some(Ceiling { limit: budget.limit(), trigger: budget.trigger(), fixed: budget.fixed() })
    }

    /// What a counter gives for a fixed text; a counter that fails at it has no probe.
    pub(crate) fn probe(counter: &dyn TokenCounter) -> Probe {
        let count = counter.text(PROBE).unwrap_or(TokenCount::exact(0));
        Probe { tokens: count.tokens(), certainty: count.certainty() }
    }
}

/// Tool names, each kept once.
#[derive(Debug, Default)]
pub(crate) struct Names {
    names: Vec<Arc<str>>,
    numbers: BTreeMap<Arc<str>, NonZeroU16>,
    /// How many of them a record has.
    written: usize,
}

impl Names {
    /// Names that no record has yet.
    fn unwritten(&self) -> &[Arc<str>] {
        self.names.get(self.written..).unwrap_or_default()
    }

    /// Takes in names that a record brings.
    pub(crate) fn replay(&mut self, names: &[Arc<str>]) -> Result<(), PushError> {
        names.iter().try_for_each(|name| self.intern(name.clone()).map(|_| ()))?;
        self.written = self.names.len();
        Ok(())
    }

    pub(super) fn intern(&mut self, name: Arc<str>) -> Result<NonZeroU16, PushError> {
        if let Some(number) = self.numbers.get(&name) {
            return Ok(*number);
        }
        let next = self.names.len().checked_add(1).and_then(|next| u16::try_from(next).ok()).and_then(NonZeroU16::new);
        let Some(number) = next else {
            return Err(PushError::TooManyNames { name });
        };
        self.names.push(name.clone());
        self.numbers.insert(name, number);
        Ok(number)
    }

    pub(crate) fn get(&self, number: NonZeroU16) -> Option<&Arc<str>> {
        self.names.get(usize::from(number.get()).checked_sub(1)?)
    }
}
