//! Recover: what became of a commit whose answer was lost (rule R26).

use std::collections::BTreeMap;

use super::{
    Window,
    contents::{Commit, Contents},
    relations::Exchanges,
    step,
    table::Residency,
};
use crate::{
    CommitError, Content, ContextState, JournalError, ResumeError, SpanId, TokenCounter,
    journal::{self, Replay, Replayed},
    store::{AsyncStore, Store},
};

/// What became of a commit whose answer was lost; see [`Window::recover`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Recovered {
    /// The store does not have it: the step can be run again. Also the answer where no commit was in doubt. One that lands
    /// later all the same supersedes the window's next commit, and is then [`Written`](Self::Written).
    NotWritten,
    /// The store has it, and now the window does too.
    Written {
        /// Spans that were pushed meanwhile under a number that the commit had taken, each with its number now.
        moved: Vec<(SpanId, SpanId)>,
    },
}

impl<C: ContextState, St> Window<C, St> {
    /// After a commit that was cancelled, or whose answer was lost: asks the store whether it happened, and goes on from
    /// there. What is not in the store stays in the window. O(records) when it happened, otherwise one read.
    ///
    /// # Errors
    /// [`CommitError::Superseded`] when another owner wrote meanwhile, and what [`resume`](Self::resume) says; the window is
    /// as it was.
    pub async fn recover_async(&mut self) -> Result<Recovered, ResumeError>
    where
        St: AsyncStore,
    {
        let (episode, length, unanswered, blank) = {
            let contents = self.shared.lock();
            let blank = contents.blank(&*self.shared.counter);
            (contents.episode.clone(), contents.length, contents.unanswered.clone(), blank)
        };
        let store = &self.shared.store;
        let tail = store.read(&episode, length, 2).await.map_err(CommitError::from)?;
        let spans = match tail.as_slice() {
            [] => {
                self.shared.lock().commit = Commit::Idle;
                return Ok(Recovered::NotWritten);
            }
            [record] if journal::chain(record).is_some_and(|chain| unanswered.contains(&chain)) => {
                let opened = journal::read(record);
                opened.map_err(|fault| JournalError::Record { episode, record: length, fault })?.0.spans
            }
            _ => {
                let found = store.length(&episode).await.map_err(CommitError::from)?.saturating_sub(1);
                return Err(CommitError::Superseded { episode, expected: length, found }.into());
            }
        };
        let Replayed { mut contents, .. } = Replay::over(blank, C::LANES).read(store).await?;
        if contents.length != length.saturating_add(1) {
            let found = contents.length.saturating_sub(1);
            return Err(CommitError::Superseded { episode: contents.episode, expected: length, found }.into());
        }
        let texts = self.shared.lock().texts();
        let sealed = contents.load(store, &texts, &*self.shared.counter).await?;
        for (span, mutation) in &sealed {
            contents.remove(*span, mutation);
        }
        Ok(Recovered::Written { moved: self.shared.lock().go_on_as(contents, spans) })
    }

    /// As [`recover_async`](Self::recover_async), on a store that answers at once.
    ///
    /// # Errors
    /// As [`recover_async`](Self::recover_async).
    pub fn recover(&mut self) -> Result<Recovered, ResumeError>
    where
        St: Store,
    {
        step::at_once(self.recover_async())
    }
}

impl Contents {
    /// An empty window under the same numbers.
    fn blank(&self, counter: &dyn TokenCounter) -> Self {
        let mut blank = Self::new(journal::reader(&self.episode), self.lanes, self.budget);
        blank.max_decision = self.max_decision;
        blank.trusts_estimates = self.trusts_estimates;
        blank.expect(counter);
        blank
    }

    /// The texts in the window that were read back already; what a commit without an answer brought was not.
    fn texts(&self) -> BTreeMap<SpanId, Content> {
        let resident = self.table.resident().filter(|(_, entry)| entry.durable);
        resident.filter_map(|(span, entry)| Some((span, entry.content.clone()?))).collect()
    }

    /// Becomes what the log says, and keeps what the log does not have. Its last record was made when there were `spans`
    /// spans; gives those pushed since whose numbers it had taken for its own.
    fn go_on_as(&mut self, new: Self, spans: u64) -> Vec<(SpanId, SpanId)> {
        self.edited();
        let Self { window, numbering, changes, edits, cache, line_price, .. } = *self;
        let mut old = std::mem::replace(self, Self { window, numbering, changes, edits, cache, line_price, ..new });
        self.recalls.clone_from(&old.recalls);
        self.keep_names_and_notes(&old);
        self.lossy = self.lossy.take().or(old.lossy.take());
        let (changed, mut moved) = (self.first_change(&old), BTreeMap::new());
        for span in &old.fresh {
            let Some(entry) = old.table.get(*span) else { continue };
            let there = self.table.get(*span).map(|entry| entry.residency);
            let taken = span.number() > spans && there.is_some();
            if !taken && there.is_some_and(|residency| residency != Residency::Unrecorded) {
                continue;
            }
            let (id, start) = if taken { (self.table.next_id(), self.pushed_tokens) } else { (*span, entry.start) };
            self.enter_at(id, entry.again(start));
            if old.newest >= entry.end() {
                self.newest = self.newest.max(start.saturating_add(u64::from(entry.tokens)));
            }
            self.fresh.push(id);
            if old.failed.contains(span) {
                self.failed.insert(id);
            }
            if let Some(wire) = old.wires.get(*span) {
                self.wires.enter(id, wire.clone());
            }
            if taken {
                moved.insert(*span, id);
            }
        }
        self.relate_again(old, &moved, changed);
        if !moved.is_empty() {
            self.numbering = Self::another();
        }
        moved.into_iter().collect()
    }

    /// What the spans are to each other, with those that the log does not have; something `changed` before they entered, or
    /// not.
    fn relate_again(&mut self, old: Self, moved: &BTreeMap<SpanId, SpanId>, changed: Option<SpanId>) {
        let number = |span| moved.get(&span).copied().unwrap_or(span);
        let mut parts = std::mem::take(&mut self.exchanges).into_parts();
        parts.extend(old.exchanges.into_parts().into_iter().map(|(span, part)| (number(span), part)));
        self.exchanges = Exchanges::of(parts);
        for span in self.exchanges.spans() {
            if let Some(entry) = self.table.get_mut(span) {
                entry.exchange = true;
            }
        }
        // What left in the commit is not seen any more by whoever reads these.
        for span in &old.fresh {
            if let Some(subject) = old.reads.subject(*span).filter(|_| self.reads.subject(number(*span)).is_none()) {
                self.observed(number(*span), subject.clone());
            }
        }
        // One that has another number now has something before it that was not there.
        let same = |span: SpanId| !moved.contains_key(&span) && changed.is_none_or(|place| span < place);
        for span in old.fresh.into_iter().filter(|span| old.seals.is_intact(*span) && same(*span)) {
            if self.table.get(span).is_some_and(|entry| !entry.durable) {
                self.seals.enter(span);
            }
        }
    }

    /// The first place at which the log shows something else than the window did.
    fn first_change(&self, old: &Self) -> Option<SpanId> {
        let both = self.table.iter().zip(old.table.iter());
        let changed = both.filter(|((_, new), (_, old))| new.residency != old.residency);
        changed.map(|((span, _), _)| self.shown_at(span).min(old.shown_at(span))).min()
    }
}
