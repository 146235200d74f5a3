//! Import: a provider's JSON into the lanes that the declared routing names.

use super::{Lanes, Pass, Shared, Window, contents::Contents};
use crate::{
    ContextState, Digest, LaneSpec, NewSpan, PushError, SpanId, TokenCount,
    rule::EntersWhile,
    state::route,
    wire::{self, Format, ImportError, Imported, Made, Read, Reading, RenderError, Rendered, Waiting},
};

impl<C: ContextState, St, S> Lanes<'_, C, St, S> {
    /// Takes in a conversation, or the next messages of one, as its provider has it: a request body, a response body, the
    /// list of messages, or one message. Each block goes to the lane that the declared routing names, under the tool's name
    /// where it is a result, and is rendered as it was by [`Window::render_for`]. See [`wire`] for what becomes what. Linear in
    /// the size of the JSON; each text is counted once.
    ///
    /// Only what is new is to be imported: the whole history a second time is refused. Of several answers, the first enters.
    /// What is no history (tools, the model, limits) is not looked at, and an answer in which the model said nothing brings
    /// nothing.
    ///
    /// # Errors
    /// [`ImportError`] names the message; nothing entered. Only a push that fails after others ([`ImportError::Stopped`]) says
    /// what did.
    pub fn import<F: Format>(&self, _format: F, json: &serde_json::Value) -> Result<Imported, ImportError>
    where
        S: EntersWhile<C>, // open lanes only
    {
        wire::shallow::<F>(json)?;
        let mut reading = Reading::new::<F>(self.shared.lock().waiting());
        F::read(json, &mut reading)?;
        let (read, elsewhere) = reading.finish();
        self.shared.lock().is_new(&read)?;
        let mut counted = Vec::with_capacity(read.len());
        for read in &read {
            counted.push(prepared(self.shared, C::LANES, read)?);
        }
        let mut imported = Imported { spans: Vec::with_capacity(read.len()), elsewhere, ..Imported::default() };
        let mut contents = self.shared.lock();
        for (read, (lane, count)) in read.into_iter().zip(counted) {
            let span = match contents.push(lane, read.span, count) {
                Ok(span) => span,
                Err(source) if imported.spans.is_empty() => {
                    return Err(ImportError::Refused { index: read.index, source });
                }
                Err(source) => {
                    return Err(ImportError::Stopped { index: read.index, pushed: imported.spans, source });
                }
            };
            imported.spans.push(span);
            imported.opaque.extend(read.opaque.then_some(span));
            imported.orphans.extend(read.orphan.then_some(span));
        }
        Ok(imported)
    }
}

/// The lane and the count of what was read, before any of it enters.
fn prepared<St>(
    shared: &Shared<St>,
    lanes: &'static [LaneSpec],
    read: &Read,
) -> Result<(u16, TokenCount), ImportError> {
    let (index, span) = (read.index, &read.span);
    let refused = |source| ImportError::Refused { index, source };
    let no_route = || PushError::NoRoute { role: span.role.name(), tool: span.name.clone() };
    let lane = route(lanes, span).ok_or_else(|| refused(no_route()))?;
    let count = span.count(&*shared.counter).map_err(|source| ImportError::Counter { index, source })?;
    let tokens = u64::from(count.tokens());
    let room = shared.lock().budget.map(crate::Budget::room);
    if let Some(budget) = room.filter(|room| tokens > *room) {
        let lane = lanes.get(usize::from(lane)).map_or("?", LaneSpec::name);
        return Err(refused(PushError::LargerThanBudget { lane, tokens, budget }));
    }
    Ok((lane, count))
}

impl<C: ContextState, St> Window<C, St> {
    /// The history of a request in a provider's format: what a model would be sent now, pointers in place. What was imported is
    /// as it was; what a program pushed gets the format's plain messages. Pointers, summaries, rationales and notices of the
    /// library are messages of the user, and what came between a call and its results is shown after them, unless the format
    /// lets it stand. O(spans of the episode); allocates the result.
    ///
    /// Calls without a result are rendered as they stand, and no provider takes them: see [`open_calls`](Self::open_calls).
    ///
    /// # Errors
    /// [`RenderError`]: nothing to send, or a span that the format has no place for.
    pub fn render_for<F: Format>(&self, _format: F) -> Result<Rendered, RenderError> {
        wire::write(&self.shared.lock(), F::SHAPE)
    }
}

impl<C: ContextState, St> Pass<'_, C, St> {
    /// As [`Window::render_for`]: what the model that decides is shown of the window, beside the [index](Self::index).
    ///
    /// # Errors
    /// As [`Window::render_for`].
    pub fn render_for<F: Format>(&self, _format: F) -> Result<Rendered, RenderError> {
        wire::write(&self.shared.lock(), F::SHAPE)
    }
}

impl Contents {
    /// Refuses what begins with the same two spans as what was imported first: the whole history, once more. One message is often
    /// the same as another.
    fn is_new(&self, read: &[Read]) -> Result<(), ImportError> {
        let [first, second, ..] = read else { return Ok(()) };
        let mut before = self.wires.spans();
        let (Some(one), Some(other)) = (before.next(), before.next()) else { return Ok(()) };
        if self.is_same(one, &first.span) && self.is_same(other, &second.span) {
            return Err(ImportError::Again { index: first.index, span: one });
        }
        Ok(())
    }

    fn is_same(&self, span: SpanId, new: &NewSpan) -> bool {
        let Some(entry) = self.table.get(span) else { return false };
        let text = match &entry.content {
            Some(content) => *content == new.content,
            None => entry.durable && entry.digest == Digest::of(new.content.as_bytes()),
        };
        text && self.wires.get(span) == new.wire.as_ref()
    }

    /// Calls that a result can still come for.
    fn waiting(&self) -> Vec<Waiting> {
        let calls = self.exchanges.awaited();
        let content = |turn| self.table.get(turn)?.content.clone();
        let waiting = |(id, turn)| Waiting { id, name: None, made: Made::By(turn), turn: content(turn) };
        calls.map(waiting).collect()
    }
}
