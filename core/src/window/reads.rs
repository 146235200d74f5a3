//! Observations of the same subject: which are superseded, and which contradict what left the window.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{Window, contents::Contents, table::Residency};
use crate::{ContextState, Origin, SpanId};

/// An observation that entered while an older one of the same subject was not in the window, and differs from it; see
/// [`Window::contradictions`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Contradiction {
    /// The lane of both.
    pub lane: &'static str,
    /// What both observe.
    pub subject: Arc<str>,
    /// The older one, which had left.
    pub evicted: SpanId,
    /// The newer one.
    pub observed: SpanId,
}

impl<C: ContextState, St> Window<C, St> {
    /// The next newer observation of the same subject in the same lane; see [`NewSpan::reads`](crate::NewSpan::reads). `None`
    /// where there is none, or the span observes nothing.
    pub fn superseded_by(&self, span: SpanId) -> Option<SpanId> {
        self.shared.lock().reads.superseded_by(span)
    }

    /// Observations that differ from an older one of the same subject, in the same lane, which was not in the window when they
    /// entered, or when a migration made their lanes one, and has not come back since: the model may not know that something
    /// changed. Oldest first. O(such pairs), and a
    /// hash of each newer one that is not in the store yet.
    pub fn contradictions(&self) -> Vec<Contradiction> {
        let contents = self.shared.lock();
        (0_u16..)
            .zip(contents.lanes)
            .flat_map(|(lane, spec)| contents.contradicted(lane).map(move |pair| (spec.name(), pair)))
            .filter_map(|(lane, (evicted, observed))| {
                let subject = contents.reads.subject(observed)?.clone();
                Some(Contradiction { lane, subject, evicted, observed })
            })
            .collect()
    }
}

/// What spans observed, by lane and subject.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    /// The observations of each subject, ascending.
    observed: BTreeMap<Subject, Vec<SpanId>>,
    /// What each span observed, for its record.
    subjects: BTreeMap<SpanId, Subject>,
    /// Observations that left, each with the one that entered meanwhile.
    unresolved: BTreeSet<(SpanId, SpanId)>,
}

/// A lane, and a subject there.
type Subject = (u16, Arc<str>);

impl Reads {
    /// Takes an observation in; gives the one before it of the same subject. O(newer ones of it).
    fn enter(&mut self, span: SpanId, subject: Subject) -> Option<SpanId> {
        self.subjects.insert(span, subject.clone());
        let observed = self.observed.entry(subject).or_default();
        let at = observed.partition_point(|other| *other < span);
        observed.insert(at, span);
        observed.get(at.checked_sub(1)?).copied()
    }

    /// What each span observed, by span.
    pub(crate) fn subjects(&self) -> impl Iterator<Item = (SpanId, &Arc<str>)> {
        self.subjects.iter().map(|(span, (_, subject))| (*span, subject))
    }

    pub(crate) fn subject(&self, span: SpanId) -> Option<&Arc<str>> {
        self.subjects.get(&span).map(|(_, subject)| subject)
    }

    /// The next newer observation of the same subject in the same lane.
    pub(crate) fn superseded_by(&self, span: SpanId) -> Option<SpanId> {
        let observed = self.observed.get(self.subjects.get(&span)?)?;
        observed.get(observed.partition_point(|other| *other <= span)).copied()
    }

    pub(crate) fn is_superseded(&self, span: SpanId) -> bool {
        self.superseded_by(span).is_some()
    }

    /// In a lane, observations that left, each with the one that entered meanwhile, until they come back once.
    pub(crate) fn unresolved(&self, lane: u16) -> impl Iterator<Item = (SpanId, SpanId)> {
        let here = move |(older, _): &&(SpanId, SpanId)| self.subjects.get(older).is_some_and(|(of, _)| *of == lane);
        self.unresolved.iter().filter(here).copied()
    }

    /// An observation came back: whoever reads on sees both.
    pub(crate) fn came_back(&mut self, older: SpanId) {
        while let Some(pair) = self.unresolved.range((older, SpanId::mint(0))..).next().filter(|(of, _)| *of == older) {
            let pair = *pair;
            self.unresolved.remove(&pair);
        }
    }

    /// A span was removed for good: nothing contradicts it, and it contradicts nothing.
    pub(crate) fn removed(&mut self, span: SpanId) {
        if self.subjects.contains_key(&span) {
            self.unresolved.retain(|(older, newer)| *older != span && *newer != span);
        }
    }

    /// The same observations in other lanes; what one lane observes of a subject is in one order, also where two became one.
    /// There, one of the other lane takes the place of the one before it, which may be `unseen`.
    pub(crate) fn migrate(&mut self, lane: impl Fn(u16) -> u16, unseen: impl Fn(SpanId, SpanId) -> bool) {
        self.observed.clear();
        let before = std::mem::take(&mut self.subjects);
        for (span, (old, subject)) in &before {
            let older = self.enter(*span, (lane(*old), subject.clone()));
            let of_another = |older: &SpanId| before.get(older).is_some_and(|(lane, _)| lane != old);
            if let Some(older) = older.filter(|older| of_another(older) && unseen(*older, *span)) {
                self.unresolved.insert((older, *span));
            }
        }
    }
}

impl Contents {
    /// A span that entered observes a subject.
    pub(crate) fn observed(&mut self, span: SpanId, subject: Arc<str>) {
        // What a model says of a subject is no observation of it, and takes nothing's place.
        let Some(entry) = self.table.get(span).filter(|entry| entry.origin != Origin::Model) else { return };
        let older = self.reads.enter(span, (entry.lane, subject));
        if let Some(older) = older.filter(|older| self.is_unseen(*older, span)) {
            self.reads.unresolved.insert((older, span));
        }
    }

    /// In a lane, observations that left, each with a newer one that says something else.
    pub(crate) fn contradicted(&self, lane: u16) -> impl Iterator<Item = (SpanId, SpanId)> {
        let differ = |(evicted, observed): &(SpanId, SpanId)| self.digest(*evicted) != self.digest(*observed);
        self.reads.unresolved(lane).filter(differ)
    }

    /// Whether an observation is not in the window beside the one that takes its place. An answer to a recall repeats what was
    /// seen before.
    pub(crate) fn is_unseen(&self, older: SpanId, newer: SpanId) -> bool {
        self.is_away(older) && !self.table.get(newer).is_some_and(|entry| self.is_recall(entry))
    }

    /// Whether a span left and can come back.
    fn is_away(&self, span: SpanId) -> bool {
        let residency = self.table.get(span).map(|entry| entry.residency);
        matches!(residency, Some(Residency::Evicted | Residency::Replaced))
    }
}
