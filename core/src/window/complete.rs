//! What a claim needs and the window does not show (rules R17, R21).

use super::{Window, contents::Contents, table::Residency};
use crate::{ContextState, SpanId, pointer::Ids};

/// Every span that a claim rests on is in the window, which stays so for as long as this is borrowed from it.
#[derive(Debug)]
#[must_use = "make the claim while the window is borrowed"]
pub struct Complete<'w> {
    window: std::marker::PhantomData<&'w mut ()>,
    claim: String,
    spans: Vec<SpanId>,
}

impl Complete<'_> {
    /// The claim.
    pub fn claim(&self) -> &str {
        &self.claim
    }

    /// What it rests on, ascending, each once.
    pub fn spans(&self) -> &[SpanId] {
        &self.spans
    }
}

/// Why a claim is not substantiated: no span that it names is said to be absent because the window does not show it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{claim:?} is not substantiated:{}{}", recoverable(missing), unrecoverable_text(unrecoverable))]
pub struct Incomplete {
    claim: String,
    missing: Vec<SpanId>,
    unrecoverable: Vec<SpanId>,
}

impl Incomplete {
    /// The claim.
    pub fn claim(&self) -> &str {
        &self.claim
    }

    /// Spans that left the window and can be brought back, ascending.
    pub fn missing(&self) -> &[SpanId] {
        &self.missing
    }

    /// Spans that are in neither the window nor the store, ascending: removed for good, lost with a process that stopped, or
    /// never there. No claim may rest on them.
    pub fn unrecoverable(&self) -> &[SpanId] {
        &self.unrecoverable
    }
}

fn recoverable(spans: &[SpanId]) -> String {
    if spans.is_empty() { String::new() } else { format!(" {} left the window, restore or re-ground;", Ids(spans)) }
}

fn unrecoverable_text(spans: &[SpanId]) -> String {
    if spans.is_empty() {
        String::new()
    } else {
        format!(" {} is neither in the window nor in the store: drop the claim, or observe it again", Ids(spans))
    }
}

impl<C: ContextState, St> Window<C, St> {
    /// Whether a claim may be made: every span that it rests on is in the window, not just pointed at. O(spans named).
    ///
    /// # Errors
    /// [`Incomplete`] has what is missing and can be brought back, and what cannot.
    pub fn assert_complete(
        &mut self,
        claim: impl Into<String>,
        spans: impl IntoIterator<Item = SpanId>,
    ) -> Result<Complete<'_>, Incomplete> {
        let mut spans: Vec<_> = spans.into_iter().collect();
        spans.sort_unstable();
        spans.dedup();
        let claim = claim.into();
        let (mut missing, mut unrecoverable) = (Vec::new(), Vec::new());
        let contents = self.shared.lock();
        for span in &spans {
            match contents.standing_of(*span) {
                Some(Residency::Resident) => {}
                Some(_) => missing.push(*span),
                None => unrecoverable.push(*span),
            }
        }
        if missing.is_empty() && unrecoverable.is_empty() {
            return Ok(Complete { window: std::marker::PhantomData, claim, spans });
        }
        Err(Incomplete { claim, missing, unrecoverable })
    }
}

impl Contents {
    /// Where a span's text is; none where it is nowhere.
    fn standing_of(&self, span: SpanId) -> Option<Residency> {
        let residency = self.table.get(span)?.residency;
        let gone = self.gone.contains_key(&span) || matches!(residency, Residency::Unrecorded | Residency::Discarded);
        (!gone).then_some(residency)
    }
}
