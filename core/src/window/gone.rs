//! What was removed for good, and what a window can then still claim (rule R23).

use std::sync::Arc;

use super::{Mutation, contents::Contents, table::Residency};
use crate::{CounterError, SpanId, TokenCount, TokenCounter, journal::MutationRecord, pointer::Plain};

/// What a declared mutation left behind.
#[derive(Clone, Debug)]
pub(crate) struct Gone {
    pub(crate) reason: String,
    pub(crate) recovery: String,
    /// What the window shows in the span's place.
    pub(crate) notice: Arc<str>,
    pub(crate) count: TokenCount,
}

/// Since when, and why, a window is not a projection over an intact source any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lossy {
    pub(crate) record: u64,
    pub(crate) cause: Loss,
    pub(crate) reason: String,
}

/// What broke the chain from a window back to everything it ever held.
// A variant named as a public type would make the compiler say `keepspan::Mutation` for that type in every message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Loss {
    /// A span was removed for good (rule R23).
    Mutated,
    /// Summaries were summarized (rule R4).
    Escalated,
    /// The store did not give a span back as it was written (rule R2).
    Unverified,
}

impl Contents {
    /// What takes the place of a span that is removed for good.
    pub(crate) fn notice(
        &self,
        span: SpanId,
        mutation: &Mutation,
        counter: &dyn TokenCounter,
    ) -> Result<MutationRecord, CounterError> {
        let Mutation { reason, recovery, .. } = mutation;
        let count = counter.text(&self.notice_text(span, reason, recovery))?;
        let (tokens, certainty) = (count.tokens(), count.certainty());
        Ok(MutationRecord { reason: reason.clone(), recovery: recovery.clone(), tokens, certainty })
    }

    fn notice_text(&self, span: SpanId, reason: &str, recovery: &str) -> String {
        let lane = self.table.get(span).map_or("?", |entry| self.lane_name(entry));
        format!("[{span} {lane}: removed for good: {}; to recover: {}]", Plain(reason), Plain(recovery))
    }

    /// Removes a span for good: what is shown of it, text or pointer, gives way to a notice; a source of a summary is
    /// not shown, and its summary stays. Its pointer is the caller's to take out.
    pub(crate) fn remove(&mut self, span: SpanId, mutation: &MutationRecord) {
        let Some(residency) = self.table.get(span).map(|entry| entry.residency) else { return };
        let notice = self.notice_text(span, &mutation.reason, &mutation.recovery).into();
        let (reason, recovery, count) = (mutation.reason.clone(), mutation.recovery.clone(), mutation.count());
        self.gone.insert(span, Gone { reason, recovery, notice, count });
        if let Residency::Resident | Residency::Evicted = residency {
            self.leave(span, Residency::Discarded);
            self.utilization = self.utilization.saturating_add(u64::from(count.tokens()));
            self.certainty = self.certainty.max(count.certainty());
        }
        self.fresh.retain(|fresh| *fresh != span);
        self.reads.removed(span);
        self.mark_lossy(Loss::Mutated, format!("removed for good: {}", mutation.reason));
    }

    /// Since the record that was written last, no claim may rest on the window being complete.
    pub(crate) fn mark_lossy(&mut self, cause: Loss, reason: String) {
        let record = self.length.saturating_sub(1);
        self.lossy.get_or_insert(Lossy { record, cause, reason });
    }
}
