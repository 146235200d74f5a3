//! What spans are to each other: exchanges, which are one unit (rule R16), and reads of the same subject.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{SpanId, span::Part};

/// Every exchange of the episode, by its first span.
#[derive(Debug, Default)]
pub(crate) struct Exchanges {
    members: BTreeMap<SpanId, Vec<SpanId>>,
    /// What each span of an exchange does in it.
    parts: BTreeMap<SpanId, Part>,
    /// The first span of the exchange that a result belongs to.
    first: BTreeMap<SpanId, SpanId>,
    /// Calls without a result, oldest first. Providers use the same id again in a later turn.
    open: Vec<(Arc<str>, SpanId)>,
}

impl Exchanges {
    /// Whether a span can join: a result needs its call.
    pub(crate) fn takes(&self, part: &Part) -> Result<(), Arc<str>> {
        match part {
            Part::Answers(call) if !self.open.iter().any(|(open, _)| open == call) => Err(call.clone()),
            _ => Ok(()),
        }
    }

    /// Takes a span in that [`takes`](Self::takes) let through; whether it is part of an exchange.
    pub(crate) fn enter(&mut self, span: SpanId, part: Part) -> bool {
        match &part {
            Part::None => return false,
            Part::Calls(calls) if calls.is_empty() => return false,
            Part::Calls(calls) => {
                self.members.insert(span, vec![span]);
                self.open.extend(calls.iter().map(|call| (call.clone(), span)));
            }
            Part::Answers(call) => {
                let Some(at) = self.open.iter().rposition(|(open, _)| open == call) else { return false };
                let (_, first) = self.open.remove(at);
                self.members.entry(first).or_default().push(span);
                self.first.insert(span, first);
            }
        }
        self.parts.insert(span, part);
        true
    }

    /// What a span does in its exchange.
    pub(crate) fn part(&self, span: SpanId) -> Option<&Part> {
        self.parts.get(&span)
    }

    /// The spans of the exchange that `span` is part of, ascending.
    pub(crate) fn unit(&self, span: SpanId) -> Option<&[SpanId]> {
        let first = self.first.get(&span).copied().unwrap_or(span);
        self.members.get(&first).map(Vec::as_slice)
    }

    /// A call of the exchange that has no result yet.
    pub(crate) fn pending(&self, span: SpanId) -> Option<&Arc<str>> {
        let first = self.first.get(&span).copied().unwrap_or(span);
        self.open.iter().find(|(_, of)| *of == first).map(|(call, _)| call)
    }
}

/// Which span read a subject last, and which were so superseded.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    last: BTreeMap<Arc<str>, SpanId>,
    superseded: BTreeSet<SpanId>,
}

impl Reads {
    /// A failed read supersedes nothing.
    pub(crate) fn enter(&mut self, span: SpanId, subject: Option<Arc<str>>, failed: bool) {
        let Some(subject) = subject.filter(|_| !failed) else { return };
        self.superseded.extend(self.last.insert(subject, span));
    }

    pub(crate) fn is_superseded(&self, span: SpanId) -> bool {
        self.superseded.contains(&span)
    }
}
