//! Seals: what a provider signed together with all that stood before it.

use super::contents::Contents;
use crate::SpanId;

/// The sealed spans before which nothing changed since they entered, ascending.
#[derive(Debug, Default)]
pub(crate) struct Seals(Vec<SpanId>);

impl Seals {
    /// A sealed span entered, and nothing before it has changed since.
    pub(crate) fn enter(&mut self, span: SpanId) {
        if let Err(at) = self.0.binary_search(&span) {
            self.0.insert(at, span);
        }
    }

    pub(crate) fn is_intact(&self, span: SpanId) -> bool {
        self.0.binary_search(&span).is_ok()
    }

    /// Something changed at a place: the seals from there on are broken, each once. O(seals that break).
    fn break_from(&mut self, place: SpanId) {
        while self.0.pop_if(|span| *span >= place).is_some() {}
    }
}

impl Contents {
    /// What the model sees at a span's place is another from here on.
    pub(crate) fn unseal(&mut self, span: SpanId) {
        if !self.seals.0.is_empty() {
            let place = self.shown_at(span);
            self.seals.break_from(place);
        }
    }

    /// Where a span is shown: a summary at the place of its first source.
    pub(crate) fn shown_at(&self, span: SpanId) -> SpanId {
        if !self.derivations.contains_key(&span) {
            return span;
        }
        self.roots(span).first().copied().unwrap_or(span)
    }
}
