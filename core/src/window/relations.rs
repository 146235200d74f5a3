//! What spans are to each other: exchanges, which are one unit (rule R16), and reads of the same subject.

use std::{collections::BTreeMap, sync::Arc};

use crate::{SpanId, span::Part};

/// Every exchange of the episode, by its first span.
#[derive(Debug, Default)]
pub(crate) struct Exchanges {
    all: BTreeMap<SpanId, Exchange>,
    /// What each span of an exchange does in it.
    parts: BTreeMap<SpanId, Part>,
    /// The first span of the exchange that a result belongs to.
    first: BTreeMap<SpanId, SpanId>,
    /// Calls without a result, oldest first. Providers use the same id again in a later turn.
    open: Vec<(Arc<str>, SpanId)>,
}

#[derive(Debug, Default)]
struct Exchange {
    spans: Vec<SpanId>,
    /// How many of its calls have no result: asked for every candidate, where a walk over the open calls would not do.
    open: usize,
}

impl Exchanges {
    /// Whether a span can join: a result needs its call.
    pub(crate) fn takes(&self, part: &Part) -> Result<(), Arc<str>> {
        match part {
            Part::Answers(call) if !self.open.iter().rev().any(|(open, _)| open == call) => Err(call.clone()),
            _ => Ok(()),
        }
    }

    /// Takes a span in that [`takes`](Self::takes) let through.
    pub(crate) fn enter(&mut self, span: SpanId, part: Part) {
        match &part {
            Part::None => return,
            Part::Calls(calls) => {
                self.all.insert(span, Exchange { spans: vec![span], open: calls.len() });
                self.open.extend(calls.iter().map(|call| (call.clone(), span)));
            }
            Part::Answers(call) => {
                let Some(at) = self.open.iter().rposition(|(open, _)| open == call) else { return };
                let (_, first) = self.open.remove(at);
                let exchange = self.all.entry(first).or_default();
                exchange.spans.push(span);
                exchange.open = exchange.open.saturating_sub(1);
                self.first.insert(span, first);
            }
        }
        self.parts.insert(span, part);
    }

    /// What a span does in its exchange.
    pub(crate) fn part(&self, span: SpanId) -> Option<&Part> {
        self.parts.get(&span)
    }

    /// The spans of the exchange that `span` is part of, ascending.
    pub(crate) fn unit(&self, span: SpanId) -> Option<&[SpanId]> {
        self.of(span).map(|exchange| exchange.spans.as_slice())
    }

    /// Whether a call of the exchange has no result yet.
    pub(crate) fn is_pending(&self, span: SpanId) -> bool {
        self.of(span).is_some_and(|exchange| exchange.open > 0)
    }

    /// Every call without a result, oldest first.
    pub(crate) fn open(&self) -> Vec<(SpanId, Arc<str>)> {
        self.open.iter().map(|(call, span)| (*span, call.clone())).collect()
    }

    /// A call of the exchange that has no result yet, for a message.
    pub(crate) fn pending(&self, span: SpanId) -> Option<&Arc<str>> {
        let first = self.first_of(span);
        self.open.iter().find(|(_, of)| *of == first).map(|(call, _)| call)
    }

    /// The spans of all exchanges.
    pub(crate) fn spans(&self) -> impl Iterator<Item = SpanId> {
        self.parts.keys().copied()
    }

    /// The same exchanges under other numbers, in the same order.
    pub(crate) fn renumbered(&self, number: impl Fn(SpanId) -> SpanId) -> Self {
        let mut new = Self::default();
        for (span, part) in &self.parts {
            new.enter(number(*span), part.clone());
        }
        new
    }

    fn of(&self, span: SpanId) -> Option<&Exchange> {
        self.all.get(&self.first_of(span))
    }

    fn first_of(&self, span: SpanId) -> SpanId {
        self.first.get(&span).copied().unwrap_or(span)
    }
}

/// Which span read a subject last, and which were so superseded.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    last: BTreeMap<Arc<str>, SpanId>,
    /// What each span read, for its record.
    subjects: BTreeMap<SpanId, Arc<str>>,
    superseded: BTreeMap<SpanId, SpanId>,
}

impl Reads {
    /// A failed read supersedes nothing.
    pub(crate) fn enter(&mut self, span: SpanId, subject: Option<Arc<str>>, failed: bool) {
        let Some(subject) = subject.filter(|_| !failed) else { return };
        self.subjects.insert(span, subject.clone());
        self.superseded.extend(self.last.insert(subject, span).map(|older| (older, span)));
    }

    /// What each span read, by span.
    pub(crate) fn subjects(&self) -> impl Iterator<Item = (&SpanId, &Arc<str>)> {
        self.subjects.iter()
    }

    pub(crate) fn subject(&self, span: SpanId) -> Option<&Arc<str>> {
        self.subjects.get(&span)
    }

    /// The same reads under other numbers, in the same order.
    pub(crate) fn renumbered(&self, number: impl Fn(SpanId) -> SpanId) -> Self {
        let mut new = Self::default();
        for (span, subject) in &self.subjects {
            new.enter(number(*span), Some(subject.clone()), false);
        }
        new
    }

    pub(crate) fn is_superseded(&self, span: SpanId) -> bool {
        self.superseded.contains_key(&span)
    }

    /// The newer read of the same subject.
    pub(crate) fn superseded_by(&self, span: SpanId) -> Option<SpanId> {
        self.superseded.get(&span).copied()
    }
}
