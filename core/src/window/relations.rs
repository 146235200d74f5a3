//! What spans are to each other: exchanges, which are one unit (rule R16).

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use super::{Window, contents::Contents, table::Entry};
use crate::{ContextState, SelectionError, SpanId, span::Part};

/// A call that has no final result; see [`Window::open_calls`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenCall {
    /// The span that made it.
    pub span: SpanId,
    /// The provider's id of it.
    pub call: Arc<str>,
    /// The tokens that entered after that span.
    pub age: u64,
}

impl fmt::Display for OpenCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { span, call, age } = self;
        write!(f, "`{call}` of {span}, {age} tokens ago")
    }
}

/// What a result is to its call. A provider takes one result a call: send the [final](Self::Final) or [lost](Self::Lost) one as
/// that, and the others as plain text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ResultState {
    /// It closed the call.
    Final,
    /// It left the call open.
    Interim,
    /// The call was [abandoned](Window::abandon), and the library says so.
    Lost,
    /// It came after the call was abandoned.
    Late,
    /// Its call never was in the window.
    Orphan,
}

impl<C: ContextState, St> Window<C, St> {
    /// Calls that have no final result, oldest first. After a stop their results may be lost, and the exchange stays pending
    /// until each has one (rule R16): push it, or [abandon](Self::abandon) the call. What is pending is no candidate and holds
    /// nothing else back.
    pub fn open_calls(&self) -> Vec<OpenCall> {
        self.shared.lock().open_calls()
    }

    /// Results whose call never was in the window, oldest first; see [`NewSpan::orphan`](crate::NewSpan::orphan).
    pub fn orphans(&self) -> Vec<SpanId> {
        self.shared.lock().exchanges.orphans.iter().copied().collect()
    }
}

/// Every exchange of the episode, by its first span. What it comes to depends on the parts and the order of their spans alone.
#[derive(Debug, Default)]
pub(crate) struct Exchanges {
    all: BTreeMap<SpanId, Exchange>,
    /// What each span of an exchange does in it.
    parts: BTreeMap<SpanId, Part>,
    /// The first span of the exchange that a span belongs to, where it is another.
    first: BTreeMap<SpanId, SpanId>,
    /// The span whose call a result answers, where that is not the first of the exchange.
    callers: BTreeMap<SpanId, SpanId>,
    /// Calls without a final result, oldest first. Providers use the same id again in a later turn.
    open: Vec<Call>,
    /// Calls that were abandoned and had no late result yet, in the order in which they were.
    lost: Vec<Call>,
    /// The turn that entered last, if it has a label.
    turn: Option<Labelled>,
    orphans: BTreeSet<SpanId>,
    /// Results that came after their call was abandoned.
    late: BTreeSet<SpanId>,
}

#[derive(Debug, Default)]
struct Exchange {
    spans: Vec<SpanId>,
    /// How many of its calls have no result: asked for every candidate, where a walk over the open calls would not do.
    open: usize,
}

#[derive(Clone, Debug)]
struct Call {
    id: Arc<str>,
    /// The span that made it.
    span: SpanId,
}

#[derive(Debug)]
struct Labelled {
    label: Arc<str>,
    first: SpanId,
    last: SpanId,
}

/// The newest call of this id.
fn nearest(calls: &[Call], id: &str) -> Option<usize> {
    calls.iter().rposition(|call| *call.id == *id)
}

impl Exchanges {
    /// The exchanges that these parts come to.
    pub(crate) fn of(parts: BTreeMap<SpanId, Part>) -> Self {
        let mut new = Self::default();
        parts.into_iter().for_each(|(span, part)| new.enter(span, part));
        new
    }

    /// Whether a span can join: a result needs its call.
    pub(crate) fn takes(&self, part: &Part) -> Result<(), Arc<str>> {
        let (call, found) = match part {
            Part::Answers(call) | Part::Interim(call) => {
                (call, nearest(&self.open, call).or_else(|| nearest(&self.lost, call)))
            }
            Part::Lost(span, call) => (call, self.opened(*span, call)),
            _ => return Ok(()),
        };
        found.map(|_| ()).ok_or_else(|| call.clone())
    }

    /// Takes a span in that [`takes`](Self::takes) let through; the newest so far.
    pub(crate) fn enter(&mut self, span: SpanId, part: Part) {
        let joined = match &part {
            Part::None => return,
            Part::Orphan(_) => {
                self.orphans.insert(span);
                Some(())
            }
            Part::Calls(calls) => {
                self.said(span, None, calls);
                Some(())
            }
            Part::Turn(turn) => {
                self.said(span, turn.label.as_ref(), &turn.calls);
                Some(())
            }
            Part::Answers(call) => self.answered(span, call, true),
            Part::Interim(call) => self.answered(span, call, false),
            Part::Lost(of, call) => self.abandoned(span, *of, call),
        };
        if joined.is_some() {
            self.parts.insert(span, part);
        }
    }

    /// A turn begins, or the one of this label goes on where its last span is the one before.
    fn said(&mut self, span: SpanId, label: Option<&Arc<str>>, calls: &[Arc<str>]) {
        let same = |turn: &Labelled| label == Some(&turn.label) && turn.last.next() == span;
        let first = self.turn.take().filter(same).map_or(span, |turn| turn.first);
        self.turn = label.map(|label| Labelled { label: label.clone(), first, last: span });
        self.open.extend(calls.iter().map(|id| Call { id: id.clone(), span }));
        let exchange = self.join(span, first);
        exchange.open = exchange.open.saturating_add(calls.len());
    }

    fn answered(&mut self, span: SpanId, call: &str, is_final: bool) -> Option<()> {
        if let Some(at) = nearest(&self.open, call) {
            let caller = self.open.get(at)?.span;
            let first = self.first_of(caller);
            let exchange = self.join(span, first);
            if is_final {
                exchange.open = exchange.open.saturating_sub(1);
                self.open.remove(at);
                if caller != first {
                    self.callers.insert(span, caller);
                }
            }
            return Some(());
        }
        let at = nearest(&self.lost, call)?;
        let first = self.first_of(self.lost.get(at)?.span);
        self.join(span, first);
        self.late.insert(span);
        if is_final {
            self.lost.remove(at);
        }
        Some(())
    }

    fn abandoned(&mut self, span: SpanId, of: SpanId, call: &str) -> Option<()> {
        let at = self.opened(of, call)?;
        let call = self.open.remove(at);
        let exchange = self.join(span, self.first_of(of));
        exchange.open = exchange.open.saturating_sub(1);
        self.lost.push(call);
        Some(())
    }

    fn join(&mut self, span: SpanId, first: SpanId) -> &mut Exchange {
        if span != first {
            self.first.insert(span, first);
        }
        let exchange = self.all.entry(first).or_default();
        exchange.spans.push(span);
        exchange
    }

    /// Where the call of this span is among those that are open.
    fn opened(&self, span: SpanId, call: &str) -> Option<usize> {
        self.open.iter().position(|open| open.span == span && *open.id == *call)
    }

    /// Calls that a result can still come for, each with the span that made it: abandoned ones, then those that are open.
    pub(crate) fn awaited(&self) -> impl Iterator<Item = (Arc<str>, SpanId)> {
        self.lost.iter().chain(&self.open).map(|call| (call.id.clone(), call.span))
    }

    /// What a span does in its exchange.
    pub(crate) fn part(&self, span: SpanId) -> Option<&Part> {
        self.parts.get(&span)
    }

    /// What each span does, by span.
    pub(crate) fn into_parts(self) -> BTreeMap<SpanId, Part> {
        self.parts
    }

    /// What a result is to its call.
    pub(crate) fn result(&self, span: SpanId) -> Option<ResultState> {
        match self.parts.get(&span)? {
            Part::Answers(_) | Part::Interim(_) if self.late.contains(&span) => Some(ResultState::Late),
            Part::Answers(_) => Some(ResultState::Final),
            Part::Interim(_) => Some(ResultState::Interim),
            Part::Lost(..) => Some(ResultState::Lost),
            Part::Orphan(_) => Some(ResultState::Orphan),
            Part::None | Part::Calls(_) | Part::Turn(_) => None,
        }
    }

    /// The call that a final result answers, or whose result it stands for, and the span that made it.
    pub(crate) fn call_of(&self, span: SpanId) -> Option<(&Arc<str>, SpanId)> {
        match self.parts.get(&span)? {
            Part::Answers(call) => {
                Some((call, self.callers.get(&span).copied().unwrap_or_else(|| self.first_of(span))))
            }
            Part::Lost(caller, call) => Some((call, *caller)),
            _ => None,
        }
    }

    /// Whether it is an interim result, and its call has no final one yet.
    pub(crate) fn is_unfinished(&self, span: SpanId) -> bool {
        let Some(Part::Interim(call)) = self.parts.get(&span) else { return false };
        let first = self.first_of(span);
        self.open.iter().any(|open| open.id == *call && self.first_of(open.span) == first)
    }

    /// Whether a turn began in an earlier span.
    pub(crate) fn goes_on(&self, span: SpanId) -> bool {
        matches!(self.part(span), Some(Part::Turn(_))) && self.first.contains_key(&span)
    }

    /// Whether it is the result of a call that never was in the window.
    pub(crate) fn is_orphan(&self, span: SpanId) -> bool {
        !self.orphans.is_empty() && self.orphans.contains(&span)
    }

    /// The spans of the exchange that `span` is part of, ascending.
    pub(crate) fn unit(&self, span: SpanId) -> Option<&[SpanId]> {
        self.of_span(span).map(|exchange| exchange.spans.as_slice())
    }

    /// Whether a part of the exchange is sealed.
    fn is_sealed(&self, span: SpanId) -> bool {
        let sealed = |span: &SpanId| self.part(*span).is_some_and(|part| part.seal().is_some());
        self.unit(span).is_some_and(|unit| unit.iter().any(sealed))
    }

    /// Whether a call of the exchange has no result yet.
    pub(crate) fn is_pending(&self, span: SpanId) -> bool {
        self.of_span(span).is_some_and(|exchange| exchange.open > 0)
    }

    /// The spans of all exchanges.
    pub(crate) fn spans(&self) -> impl Iterator<Item = SpanId> {
        self.parts.iter().filter(|(_, part)| part.is_of_exchange()).map(|(span, _)| *span)
    }

    fn of_span(&self, span: SpanId) -> Option<&Exchange> {
        self.all.get(&self.first_of(span))
    }

    pub(crate) fn first_of(&self, span: SpanId) -> SpanId {
        self.first.get(&span).copied().unwrap_or(span)
    }
}

impl Contents {
    /// Every call without a final result, oldest first.
    pub(crate) fn open_calls(&self) -> Vec<OpenCall> {
        self.exchanges.open.iter().map(|call| self.open_call(call)).collect()
    }

    /// A call of the span's exchange that has no final result, for a message. O(open calls).
    pub(crate) fn waits_for(&self, span: SpanId) -> Option<OpenCall> {
        let first = self.exchanges.first_of(span);
        let mut open = self.exchanges.open.iter();
        open.find(|call| self.exchanges.first_of(call.span) == first).map(|call| self.open_call(call))
    }

    fn open_call(&self, Call { id, span }: &Call) -> OpenCall {
        let end = self.table.get(*span).map_or(0, Entry::end);
        OpenCall { span: *span, call: id.clone(), age: self.pushed_tokens.saturating_sub(end) }
    }

    /// What a span does in its exchange, as it is recorded now.
    pub(crate) fn part(&self, span: SpanId) -> Part {
        let mut part = self.exchanges.part(span).cloned().unwrap_or_default();
        if let Part::Turn(turn) = &mut part
            && let Some(intact) = &mut turn.seal
        {
            *intact = self.seals.is_intact(span);
        }
        part
    }

    /// Whether `spans`, ascending, have no exchange's parts without the others (rule R16).
    pub(crate) fn no_half(&self, spans: &[SpanId]) -> Result<(), SelectionError> {
        for span in spans {
            if let Some((left, _)) = self.unit(*span).find(|(part, _)| spans.binary_search(part).is_err()) {
                self.seal_whole(*span, spans, Entry::is_resident)?;
                return Err(SelectionError::HalfAnExchange { span: *span, left });
            }
        }
        Ok(())
    }

    /// Whether what is removed for good, ascending, is no part of a sealed exchange without the others.
    pub(crate) fn no_seal_torn(&self, spans: &[SpanId]) -> Result<(), SelectionError> {
        let there = |entry: &Entry| entry.residency != super::table::Residency::Discarded;
        spans.iter().try_for_each(|span| self.seal_whole(*span, spans, there))
    }

    /// Whether `spans` have all of the sealed exchange of `span` that is in question.
    fn seal_whole(&self, span: SpanId, spans: &[SpanId], asked: impl Fn(&Entry) -> bool) -> Result<(), SelectionError> {
        if !self.table.get(span).is_some_and(|entry| entry.exchange) || !self.exchanges.is_sealed(span) {
            return Ok(());
        }
        let others = self.parts(span).filter(|(part, entry)| asked(entry) && spans.binary_search(part).is_err());
        let others: Vec<_> = others.map(|(part, _)| part).collect();
        if others.is_empty() { Ok(()) } else { Err(SelectionError::Sealed { span, others }) }
    }
}
