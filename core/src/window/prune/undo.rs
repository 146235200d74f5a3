//! Undo: everything that a pass or a fallback took comes back, in one commit.

use super::Report;
use crate::{
    RestoreError, SpanId, TokenCounter,
    accounting::Note,
    journal::Event,
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
    note: Note,
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
            let (sources, records) = contents.regrounding(*summary)?;
            events.extend(records);
            back.extend(sources);
        }
        let edit = contents.pointers.uncover(&evicted, &contents.price(counter))?;
        let fetch = contents.digests(&back);
        let before = contents.request();
        let (gone, come) = contents.pointers.delta(&edit);
        let after = before.saturating_add(come).saturating_add(contents.tokens_back(&back));
        let after = after.saturating_sub(gone).saturating_sub(contents.tokens_of(&summaries));
        let note = Note::Undone { at: contents.pushed_tokens, before, after };
        events.extend((!edit.is_empty()).then(|| Event::Pointed(edit.clone())));
        events.push(Event::Booked { note: note.clone(), written: None });
        Ok(Plan { fetch, events, ..Plan::new(Undone { back, summaries, edit, note }) })
    }

    fn apply(effect: Undone, fetched: Vec<Vec<u8>>, contents: &mut Contents, _: &'w Shared<St>) -> Vec<SpanId> {
        let Undone { mut back, summaries, edit, note } = effect;
        for summary in summaries {
            contents.retire(summary);
        }
        contents.repoint(edit);
        contents.come_back(&back, fetched);
        back.sort_unstable();
        contents.ledger.book(note);
        back
    }
}
