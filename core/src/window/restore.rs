//! Restore: from pointer back to text, verified.

use super::{Operation, Shared, contents::Contents, pointers::Edit, step::Plan, table::Residency};
use crate::{RestoreError, SpanId, TokenCounter, journal::Event};

/// Puts evicted spans back; see [`Lane::restore`](crate::Lane::restore). Gives their ids.
#[derive(Debug)]
pub struct Restore {
    /// The lane whose spans they are; any where there is none.
    pub(crate) lane: Option<u16>,
    pub(crate) spans: Vec<SpanId>,
}

impl<'w, St> Operation<'w, St> for Restore {
    type Output = Vec<SpanId>;
    type Error = RestoreError;
    type Effect = (Vec<SpanId>, Edit);

    fn plan(self, contents: &Contents, counter: &dyn TokenCounter) -> Result<Plan<Self::Effect>, RestoreError> {
        let spans = match self.lane {
            Some(lane) => contents.select(&self.spans, lane, Residency::Evicted)?,
            None => contents.of_any_lane(&self.spans, Residency::Evicted)?,
        };
        let spans = contents.whole(spans, Residency::Evicted);
        let edit = contents.pointers.uncover(&spans, &contents.price(counter))?;
        let fetch = contents.digests(&spans);
        let events = spans.iter().map(|span| Event::Restored { span: *span });
        let events = events.chain([Event::Pointed(edit.clone())]).collect();
        Ok(Plan { fetch, events, ..Plan::new((spans, edit)) })
    }

    fn apply(
        (spans, edit): Self::Effect,
        fetched: Vec<Vec<u8>>,
        contents: &mut Contents,
        _: &'w Shared<St>,
    ) -> Self::Output {
        contents.come_back(&spans, fetched);
        contents.repoint(edit);
        spans
    }
}
