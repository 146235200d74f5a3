//! A window put together again, from records that need not come in the order of their spans.

use super::{
    contents::Contents,
    table::{Entry, Residency},
};
use crate::SpanId;

impl Contents {
    /// Adds an entry in its place, as its record has it; numbers before it that no record has are kept free.
    pub(crate) fn enter_at(&mut self, span: SpanId, entry: Entry) {
        if span < self.table.next_id() {
            self.pushed_tokens = self.pushed_tokens.max(entry.end());
            self.utilization = self.utilization.saturating_add(u64::from(entry.tokens));
            self.certainty = self.certainty.max(entry.certainty);
            self.gaps.remove(&span);
            self.keep_in_mind(span, entry.lane);
            return self.table.fill(span, entry);
        }
        if let Some(before) = span.number().checked_sub(1) {
            self.reserve(SpanId::mint(before));
        }
        self.enter(entry);
    }

    /// Keeps a number that was given away and whose span no record has.
    pub(crate) fn reserve(&mut self, span: SpanId) {
        while self.table.next_id() <= span {
            let missing = self.table.push(Entry::unrecorded(self.pushed_tokens));
            self.gaps.insert(missing);
        }
    }

    /// Where the last recorded span before this one ends, in tokens pushed.
    pub(crate) fn ends_before(&self, span: SpanId) -> u64 {
        if span >= self.table.next_id() {
            return self.pushed_tokens;
        }
        span.number().checked_sub(1).and_then(|before| self.table.get(SpanId::mint(before))).map_or(0, Entry::end)
    }

    /// A span that is a pointer and has none, or that a pointer covers and is none. O(spans).
    pub(crate) fn unpointed(&self) -> Option<SpanId> {
        let mut runs = self.pointers.iter().peekable();
        for (span, entry) in self.table.iter() {
            while runs.next_if(|(_, run)| run.last < span).is_some() {}
            let covered = runs.peek().is_some_and(|(first, _)| *first <= span);
            if covered != (entry.residency == Residency::Evicted) {
                return Some(span);
            }
        }
        None
    }
}
