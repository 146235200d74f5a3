//! Evict: from text to pointer, tombstone first (rules R1, R7, R8).

use super::{Operation, Shared, candidates::Class, contents::Contents, pointers::Edit, step::Plan, table::Residency};
use crate::{EvictError, SelectionError, SpanId, TokenCounter, Tombstone, journal::Event};

/// The spans a transition takes: one id, or several. The methods of a lane take spans of that lane alone;
/// [`Window::redact_protected`](crate::Window::redact_protected) takes any.
#[derive(Clone, Debug)]
pub struct Selection {
    pub(crate) ids: Vec<SpanId>,
    pub(crate) score: Option<f64>,
}

impl Selection {
    /// Gives the score that chose these spans, for their tombstones; one that is no finite number is left out.
    #[must_use]
    pub fn scored(self, score: f64) -> Self {
        Self { score: Some(score).filter(|score| score.is_finite()), ..self }
    }
}

impl From<SpanId> for Selection {
    #[inline]
    fn from(span: SpanId) -> Self {
        Self { ids: vec![span], score: None }
    }
}

impl From<Vec<SpanId>> for Selection {
    fn from(ids: Vec<SpanId>) -> Self {
        Self { ids, score: None }
    }
}

impl From<&[SpanId]> for Selection {
    fn from(ids: &[SpanId]) -> Self {
        ids.to_vec().into()
    }
}

impl<const N: usize> From<[SpanId; N]> for Selection {
    fn from(ids: [SpanId; N]) -> Self {
        ids.to_vec().into()
    }
}

/// Evicts spans to pointers; see [`Lane::evict`](crate::Lane::evict). Gives their tombstones.
#[derive(Debug)]
pub struct Evict {
    pub(crate) lane: u16,
    pub(crate) selection: Selection,
}

impl<'w, St> Operation<'w, St> for Evict {
    type Output = Vec<Tombstone>;
    type Error = EvictError;
    type Effect = (Vec<Tombstone>, Edit);

    fn plan(self, contents: &Contents, counter: &dyn TokenCounter) -> Result<Plan<Self::Effect>, EvictError> {
        let Selection { ids, score } = self.selection;
        let ids = contents.select(&ids, self.lane, Residency::Resident)?;
        let ids = contents.whole(ids, Residency::Resident);
        let mut tombstones = Vec::with_capacity(ids.len());
        for &span in &ids {
            leaves(contents, span)?;
            let tombstone = contents.tombstone(span, score, None);
            tombstones.push(tombstone.ok_or(SelectionError::NotExternalized { span })?);
        }
        let edit =
            contents.pointers.cover(&ids, &|first, last| contents.named(first, last), &contents.price(counter))?;
        let events = tombstones.iter().map(|tombstone| Event::Evicted(tombstone.record().clone()));
        let events = events.chain([Event::Pointed(edit.clone())]).collect();
        Ok(Plan { events, ..Plan::new((tombstones, edit)) })
    }

    fn apply(
        (tombstones, edit): Self::Effect,
        _: Vec<Vec<u8>>,
        contents: &mut Contents,
        _: &'w Shared<St>,
    ) -> Self::Output {
        for tombstone in &tombstones {
            contents.leave(tombstone.span(), Residency::Evicted);
        }
        contents.repoint(edit);
        tombstones
    }
}

/// What the types hold already, held again by the lane's own declaration.
fn leaves(contents: &Contents, span: SpanId) -> Result<(), EvictError> {
    let entry = contents.entry(span)?;
    match contents.class(entry.lane) {
        Class::Kept | Class::Rationale => Err(EvictError::Kept { span, lane: contents.lane_name(entry) }),
        Class::Evictable | Class::Derived | Class::Protected => Ok(()),
    }
}
