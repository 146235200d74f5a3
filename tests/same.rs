//! What a window shows of itself, as values: two windows over one log may not differ in any.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    future::IntoFuture,
    pin::pin,
    task::{Context, Poll, Waker},
};

use keepspan::{RecallError, SelectionError, SpanId, Unsaved, Window, store::AsyncStore};

use crate::Agent;

/// Everything that can be seen of a window without changing it, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen(BTreeMap<String, String>);

impl Seen {
    /// Looks at a window. Recalls every span: O(spans of the episode).
    pub fn of<St: AsyncStore>(window: &mut Window<Agent, St>) -> Self {
        let mut seen = Self::default();
        let mut note = |what: &str, value: &dyn Debug| seen.0.insert(what.to_owned(), format!("{value:?}"));
        note("utilization", &(window.utilization(), window.certainty(), window.headroom(), window.budget()));
        note("policy", &window.policy());
        note("fidelity", &window.fidelity());
        note("accounting", &window.accounting());
        note("prices", &window.prices());
        note("open calls", &window.open_calls());
        note("orphans", &window.orphans());
        note("contradictions", &window.contradictions());
        note("missing", &window.missing());
        note("tombstones", &now(window.tombstones_async()).map(|found| found.map_err(|error| error.to_string())));
        for (at, message) in window.render().iter().enumerate() {
            let of = (message.role(), message.origin(), message.lane(), message.name(), message.tokens());
            let standing = (message.result(), message.seal_intact());
            note(&format!("message {at:05}"), &(message.shown(), of, message.content(), standing));
        }
        for span in spans(window) {
            let recalled = now(window.recall(span)).map(|recalled| match recalled {
                Ok(recalled) => Ok(recalled.content().clone()),
                Err(error) => Err(error.to_string()),
            });
            note(&format!("{span}"), &(recalled, window.derivation(span), window.superseded_by(span)));
        }
        let lanes = window.lanes();
        note("advice", &lanes.advice());
        macro_rules! each {
            ($($lane:ident)*) => {
                $(note(concat!("lane ", stringify!($lane)), &(lanes.$lane.resident(), lanes.$lane.evicted()));)*
            };
        }
        each!(rules schema holds limits target failed work decisions recap);
        seen
    }

    /// Leaves out what is not compared.
    #[must_use]
    pub fn without(mut self, what: &[&str]) -> Self {
        self.0.retain(|name, _| !what.contains(&name.as_str()));
        self
    }

    /// The first thing in which two windows differ, in words.
    pub fn difference(&self, other: &Self) -> Option<String> {
        let names = self.0.keys().chain(other.0.keys());
        let named = |name: &&String| self.0.get(*name) != other.0.get(*name);
        names.into_iter().find(named).map(|name| format!("{name}: {:?} and {:?}", self.0.get(name), other.0.get(name)))
    }
}

/// Every id that a window has given away, as far as it knows, oldest first.
pub fn spans<St: AsyncStore>(window: &Window<Agent, St>) -> Vec<SpanId> {
    let none = SpanId::parse(&format!("s{}", u64::MAX));
    let last = match none.and_then(|none| now(window.recall(none))) {
        Some(Err(RecallError::Selection(SelectionError::Unknown { spans, .. }))) => spans,
        other => panic!("{other:?}"),
    };
    (1..=last).filter_map(|number| SpanId::parse(&format!("s{number}"))).collect()
}

/// What a stop would lose, and whether the two ways to ask agree.
pub fn unsaved<St>(window: &Window<Agent, St>) -> Vec<Unsaved> {
    let (unsaved, count) = (window.unsaved(), window.uncommitted());
    let bytes: usize = unsaved.iter().map(|span| span.content.as_bytes().len()).sum();
    assert_eq!((count.spans, count.bytes), (unsaved.len(), bytes as u64));
    unsaved
}

/// Polls once: a store that answers at once is done then, and a future that is not is dropped, as by a cancellation.
pub fn now<T>(step: impl IntoFuture<Output = T>) -> Option<T> {
    match pin!(step.into_future()).as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}
