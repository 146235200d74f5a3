//! Abandon: a call whose result will not come is closed, and its exchange says so (rule R16).

use std::sync::Arc;

use super::{
    Operation, Shared, Step, Window,
    contents::Contents,
    externalize::{externalized, fresh_plan},
    step::Plan,
    summarize::{entry, sealed},
    table::Entry,
};
use crate::{
    AbandonError, ContextState, Digest, Origin, Role, SelectionError, SpanId, TokenCounter, Unexplained,
    error::explained,
    journal::{Event, SpanRecord},
    pointer::Plain,
    span::Part,
};

/// Why a call will have no result; see [`Window::abandon`]. It is logged, and shown to the model.
#[derive(Clone, Debug)]
pub struct Abandonment(String);

impl Abandonment {
    /// An abandonment with its reason: "the worker died".
    ///
    /// # Errors
    /// When the reason is blank.
    pub fn because(reason: impl Into<String>) -> Result<Self, Unexplained> {
        explained("reason", reason).map(Self)
    }
}

/// Closes a call as lost; see [`Window::abandon`]. Gives the span that stands for its result.
#[derive(Debug)]
pub struct Abandon {
    turn: SpanId,
    call: Arc<str>,
    reason: String,
}

impl<C: ContextState, St> Window<C, St> {
    /// Gives up waiting for the result of a call that the span `turn` made: a provider needs a result to every call, so a
    /// notice takes its place in the lane of the turn, which says why, and that whether the call took effect is unknown. Its
    /// exchange can then leave as any other (rule R16). A result that comes after all is pushed as ever and is one more of the
    /// exchange. One commit, with all that is not in the store yet.
    ///
    /// # Errors
    /// [`AbandonError`]: no such span, the call has its result or never was, or the commit failed.
    pub fn abandon(
        &mut self,
        turn: SpanId,
        call: impl Into<Arc<str>>,
        Abandonment(reason): Abandonment,
    ) -> Step<'_, St, Abandon> {
        Step::new(&self.shared, Abandon { turn, call: call.into(), reason })
    }
}

#[doc(hidden)]
#[derive(Debug)]
pub struct Abandoned {
    /// What was externalized with it.
    externalized: Vec<(SpanId, Digest)>,
    entry: Entry,
    part: Part,
}

impl<'w, St> Operation<'w, St> for Abandon {
    type Output = SpanId;
    type Error = AbandonError;
    type Effect = Abandoned;
    // Its number is given away with the record.
    const BLOBS_FIRST: bool = true;

    fn plan(self, contents: &Contents, counter: &dyn TokenCounter) -> Result<Plan<Abandoned>, AbandonError> {
        let Self { turn, call, reason } = self;
        let lane = contents.entry(turn)?.lane;
        let part = Part::Lost(turn, call);
        contents.exchanges.takes(&part).map_err(|call| AbandonError::NotOpen { turn, call })?;
        let text = format!("[no result: {}; whether it took effect is unknown]", Plain(&reason));
        let count = counter.text(&text)?;
        let mut entry = Entry {
            origin: Origin::Notice,
            role: Role::Tool,
            durable: true,
            offered: true,
            exchange: true,
            ..entry(contents, lane, text, count)
        };
        let span = contents.table.next_id();
        let blob = sealed(&mut entry).ok_or(SelectionError::Unrecorded { span })?;
        let result = SpanRecord { part: part.clone(), ..contents.span_record(span, &entry, Some(*blob.digest())) };
        let Plan { mut events, mut blobs, effect: externalized, .. } = fresh_plan(contents);
        events.push(Event::Abandoned { result, reason });
        blobs.push((Some(span), blob));
        Ok(Plan { events, blobs, ..Plan::new(Abandoned { externalized, entry, part }) })
    }

    fn apply(
        Abandoned { externalized: fresh, entry, part }: Abandoned,
        _: Vec<Vec<u8>>,
        contents: &mut Contents,
        _: &'w Shared<St>,
    ) -> SpanId {
        externalized(&fresh, contents);
        let span = contents.enter(entry);
        contents.newest = contents.pushed_tokens;
        contents.exchanges.enter(span, part);
        span
    }
}
