//! Undo: everything that a pass or a fallback took comes back, in one commit.

use super::Report;
use crate::{
    RestoreError, SelectionError, SpanId, TokenCounter,
    record::Event,
    window::{Operation, Shared, contents::Contents, pointers::Edit, step::Plan, table::Residency},
};

/// Brings back what a [`Report`] lists; see [`Window::undo`](crate::Window::undo). Gives the spans that are resident again.
#[derive(Debug)]
pub struct Undo {
    pub(crate) window: u64,
    pub(crate) evicted: Vec<SpanId>,
    pub(crate) summaries: Vec<SpanId>,
}

impl From<&Report> for Undo {
    fn from(report: &Report) -> Self {
        let evicted = report.tombstones.iter().filter(|tombstone| tombstone.replaced_by().is_none());
        Self {
            window: report.window,
            evicted: evicted.map(crate::Tombstone::span).collect(),
            summaries: report.summaries.clone(),
        }
    }
}

#[doc(hidden)]
#[derive(Debug)]
pub struct Undone {
    back: Vec<SpanId>,
    summaries: Vec<SpanId>,
    edit: Edit,
}

impl<'w, St> Operation<'w, St> for Undo {
    type Output = Vec<SpanId>;
    type Error = RestoreError;
    type Effect = Undone;

    fn plan(self, contents: &Contents, counter: &dyn TokenCounter) -> Result<Plan<Undone>, RestoreError> {
        let Self { window, mut evicted, summaries } = self;
        if window != contents.moment().window {
            return Err(RestoreError::OtherWindow);
        }
        evicted.sort_unstable();
        for span in &evicted {
            contents.in_state(*span, contents.entry(*span)?, Residency::Evicted)?;
        }
        let mut events: Vec<_> = evicted.iter().map(|span| Event::Restored { span: *span }).collect();
        let mut back = evicted.clone();
        for summary in &summaries {
            contents.in_state(*summary, contents.entry(*summary)?, Residency::Resident)?;
            let sources = contents.roots(*summary);
            let tombstone = contents.tombstone(*summary, None, None);
            let tombstone = tombstone.ok_or(SelectionError::NotExternalized { span: *summary })?;
            events.push(Event::Regrounded { summary: *summary, sources: sources.clone() });
            events.push(Event::Evicted(tombstone.0));
            back.extend(sources);
        }
        let edit = contents.pointers.uncover(&evicted, &contents.price(counter))?;
        let fetch = back.iter().filter_map(|span| Some(contents.table.get(*span)?.digest)).collect();
        Ok(Plan { fetch, events, ..Plan::new(Undone { back, summaries, edit }) })
    }

    fn apply(effect: Undone, fetched: Vec<Vec<u8>>, contents: &mut Contents, _: &'w Shared<St>) -> Vec<SpanId> {
        let Undone { mut back, summaries, edit } = effect;
        let before = contents.request();
        for summary in summaries {
            contents.leave(summary, Residency::Retired);
            contents.unanchor(summary);
        }
        contents.repoint(edit);
        for (span, bytes) in back.iter().zip(fetched) {
            contents.come_back(*span, bytes);
        }
        back.sort_unstable();
        contents.ledger.undone(contents.pushed_tokens, before, contents.request());
        back
    }
}
