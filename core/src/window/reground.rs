//! Re-ground: the sources come back, the summary goes (rule R4).

use super::{Operation, Shared, contents::Contents, pointers::Edit, step::Plan, table::Residency};
use crate::{RestoreError, SpanId, TokenCounter, journal::Event, kind::Derived};

/// Brings a summary's first-hand sources back; see [`Lane::reground`](crate::Lane::reground). Gives their ids.
#[derive(Debug)]
pub struct Reground {
    pub(crate) lane: u16,
    pub(crate) summary: SpanId,
}

#[doc(hidden)]
#[derive(Debug)]
pub struct Regrounded {
    summary: SpanId,
    sources: Vec<SpanId>,
    edit: Edit,
}

impl<'w, St> Operation<'w, St> for Reground {
    type Output = Vec<SpanId>;
    type Error = RestoreError;
    type Effect = Regrounded;

    fn plan(self, contents: &Contents, counter: &dyn TokenCounter) -> Result<Plan<Regrounded>, RestoreError> {
        let Self { lane, summary } = self;
        contents.is_lane_of::<Derived>(lane)?;
        // A summary that is a pointer itself, or was redacted, can be re-grounded as well: its sources are in the store all the
        // same.
        let wanted = match contents.entry(summary)?.residency {
            found @ (Residency::Evicted | Residency::Discarded) => found,
            _ => Residency::Resident,
        };
        contents.select(&[summary], lane, wanted)?;
        let (sources, events) = contents.regrounding(summary)?;
        let fetch = contents.digests(&sources);
        let edit = contents.pointers.uncover(&[summary], &contents.price(counter))?;
        let pointed = (!edit.is_empty()).then(|| Event::Pointed(edit.clone()));
        let events = events.into_iter().chain(pointed).collect();
        Ok(Plan { fetch, events, ..Plan::new(Regrounded { summary, sources, edit }) })
    }

    fn apply(effect: Regrounded, fetched: Vec<Vec<u8>>, contents: &mut Contents, _: &'w Shared<St>) -> Vec<SpanId> {
        let Regrounded { summary, sources, edit } = effect;
        contents.retire(summary);
        contents.repoint(edit);
        contents.come_back(&sources, fetched);
        sources
    }
}
