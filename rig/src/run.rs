//! A window with the run that goes on in it.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use keepspan::{
    Abandonment, Advice, CommitError, ContextState, FallBack, Fallback, FellBack, Lanes, NewSpan, PushError,
    RecallReply, Recovered, Shown as What, SpanId, Step, Tombstone, Window, policy::Permitted, rule::Externalized,
    store::AsyncStore, tool::RECALL,
};
use rig_agent::agent::RunId;
use rig_core::{completion::CompletionRequest, message::Message};

use crate::{
    error::Stop,
    gate::check,
    piece::{Held, Piece, pieces},
    transcript::Known,
    view::{Blocks, messages},
};

/// What the handles of one window share.
pub(crate) struct Shared<C: ContextState, St> {
    pub(crate) window: Window<C, St>,
    /// None until it was read from the window.
    known: Option<Known>,
    blocks: Blocks,
    run: Option<Run>,
    pub(crate) stopped: Option<Arc<Stop>>,
    /// Answers of `recall_span` that have not come back as a result.
    pub(crate) replies: Vec<RecallReply>,
    /// Whether what entered last says that a span is in its place again.
    restored: bool,
}

/// The run that the window was last shown to.
struct Run {
    id: RunId,
    /// The spans of its messages, one a block.
    spans: Vec<SpanId>,
    /// How many of them it was given as history.
    input: usize,
    /// The span of its system text.
    preamble: Option<SpanId>,
    /// The messages of its next request, as far as they are known before it is made.
    expected: Vec<Message>,
    /// The messages of the request that was let through last.
    let_through: Vec<Message>,
}

impl<C: ContextState, St: AsyncStore> Shared<C, St> {
    pub(crate) fn new(window: Window<C, St>) -> Self {
        Self {
            window,
            known: None,
            blocks: Blocks::new(),
            run: None,
            stopped: None,
            replies: Vec::new(),
            restored: false,
        }
    }

    /// Notes why the run is stopped; gives the reason as text.
    pub(crate) fn stop(&mut self, stop: Stop) -> String {
        self.run = None;
        let text = stop.to_string();
        self.stopped = Some(Arc::new(stop));
        text
    }

    /// Takes in what is new of a run's messages. Where it fails, the next call begins again.
    pub(crate) async fn enter(&mut self, id: RunId, history: &[Message], prompt: &Message) -> Result<(), Stop> {
        self.restored = false;
        let all = pieces(history.iter().chain([prompt]));
        let (before, now) = all.split_at(all.len().saturating_sub(pieces([prompt]).len()));
        let run = self.run.take_if(|run| run.id == id && run.spans.len() <= all.len());
        let (mut run, found) = match run {
            Some(run) => (run, Vec::new()),
            None => {
                self.stopped = None;
                let known = match self.known.take() {
                    Some(known) => known,
                    None => Known::of(&self.window).await?,
                };
                let found = self.known.insert(known).find(before, now);
                (Run::new(id, before.len()), found)
            }
        };
        let mut found = found.into_iter();
        for piece in all.into_iter().skip(run.spans.len()) {
            let span = match found.next().flatten() {
                Some(span) => span,
                None => self.push(piece)?,
            };
            self.blocks.insert(span, piece.message());
            run.spans.push(span);
        }
        self.run = Some(run);
        Ok(())
    }

    /// Takes in what a run said last, to which no request belongs.
    pub(crate) fn settle(&mut self, id: RunId, said: &[Message]) -> Result<(), Stop> {
        let Some(run) = self.run.take_if(|run| run.id == id) else { return Ok(()) };
        let there = run.spans.len().saturating_sub(run.input);
        pieces(said).iter().skip(there).try_for_each(|piece| self.push(*piece).map(drop))
    }

    fn push(&mut self, piece: Piece<'_>) -> Result<SpanId, Stop> {
        let span = self.reply(piece).unwrap_or_else(|| piece.span());
        let lanes = self.window.lanes();
        let pushed = match (lanes.route(span), piece) {
            // Its call is in no message that the run has.
            (Err(PushError::Unasked { call, .. }), Piece::Result { .. }) => lanes.route(piece.span().orphan(call))?,
            (pushed, _) => pushed?,
        };
        if let Some(known) = &mut self.known {
            known.add(pushed, piece.key());
        }
        Ok(pushed)
    }

    /// A recall's result, which the window knows as such.
    fn reply(&mut self, piece: Piece<'_>) -> Option<NewSpan> {
        let Piece::Result { result, last: true, .. } = piece else { return None };
        let same = |reply: &RecallReply| matches!(piece.held(), Held::Text(text) if text == reply.text());
        let at = self.replies.iter().position(same).filter(|_| *result.name == *RECALL)?;
        let reply = self.replies.remove(at);
        self.restored |= !reply.restored().is_empty();
        Some(NewSpan::from(reply).answers(&*result.call.wire()))
    }

    /// Commits all that entered, and only then frees space where that is due; gives what left.
    pub(crate) async fn commit<B: Fallback>(&mut self, strategy: B) -> Result<Vec<Tombstone>, Stop>
    where
        C::Policy: Permitted<B, C, C>,
    {
        self.externalize().await?;
        // No request has a call without a result; what is open is of a run that ended before it.
        for call in self.window.open_calls() {
            if let Ok(reason) = Abandonment::because("the run ended before it came") {
                self.window.abandon(call.span, call.call, reason).await?;
            }
        }
        // What the model has just asked for is shown to it once, where there is room.
        if self.restored && self.window.headroom().is_none_or(|free| free >= 0) {
            return Ok(Vec::new());
        }
        let externalize = self.window.lanes().externalize().await;
        let Some(freeing) = freeing(externalize?, strategy) else { return Ok(Vec::new()) };
        match freeing.await? {
            FellBack::Freed(report) => Ok(report.tombstones().to_vec()),
            _ => Ok(Vec::new()),
        }
    }

    /// Writes what the store does not have, also after a commit that was cancelled.
    pub(crate) async fn externalize(&mut self) -> Result<(), Stop> {
        match self.window.lanes().externalize().await.map(drop) {
            Err(CommitError::Interrupted { .. }) => {
                if let Recovered::Written { moved } = self.window.recover_async().await? {
                    self.renumber(&moved.into_iter().collect());
                }
                Ok(self.window.lanes().externalize().await.map(drop)?)
            }
            committed => Ok(committed?),
        }
    }

    /// Spans that the window gave other numbers, when it found that a commit had theirs.
    fn renumber(&mut self, moved: &HashMap<SpanId, SpanId>) {
        let now = |span: SpanId| moved.get(&span).copied().unwrap_or(span);
        self.blocks = std::mem::take(&mut self.blocks).into_iter().map(|(span, block)| (now(span), block)).collect();
        self.known.iter_mut().for_each(|known| known.renumber(now));
        let spans = self.run.iter_mut().flat_map(|run| run.spans.iter_mut().chain(&mut run.preamble));
        spans.for_each(|span| *span = now(*span));
    }

    /// The history to send before `prompt`, which rig adds itself.
    pub(crate) fn history(&mut self, prompt: &Message) -> Vec<Message> {
        let Some(mut run) = self.run.take() else { return Vec::new() };
        let newest = run.spans.len().saturating_sub(pieces([prompt]).len());
        let history = self.view(run.preamble.as_slice(), run.spans.get(newest..).unwrap_or_default());
        run.expected = history.clone();
        run.expected.push(prompt.clone());
        self.run = Some(run);
        history
    }

    fn view(&mut self, preamble: &[SpanId], prompt: &[SpanId]) -> Vec<Message> {
        let shown = self.window.render();
        let span = |message: &keepspan::Message| match message.shown() {
            What::Span(span) => Some(span),
            _ => None,
        };
        let resident: HashSet<_> = shown.iter().filter_map(span).collect();
        self.blocks.retain(|span, _| resident.contains(span));
        messages::<C>(&shown, &self.blocks, &[preamble, prompt].concat())
    }

    /// Takes in the system text of a request; gives whether that is new.
    pub(crate) fn preamble(&mut self, id: RunId, request: &CompletionRequest) -> Result<bool, Stop> {
        let Some(mut run) = self.run.take_if(|run| run.id == id) else { return Ok(false) };
        let system = run.preamble_of(&request.chat_history).map(Piece::System);
        let known = system.and_then(|piece| self.known.as_ref()?.newest(piece));
        run.preamble = match system {
            Some(piece) if known.is_none() => Some(self.push(piece)?),
            _ => known,
        };
        self.run = Some(run);
        Ok(system.is_some() && known.is_none())
    }

    /// The request as it may be sent.
    pub(crate) fn let_through(
        &mut self,
        id: RunId,
        request: &CompletionRequest,
    ) -> Result<Option<CompletionRequest>, Stop> {
        let Some(mut run) = self.run.take_if(|run| run.id == id) else {
            return check(&self.window, request).map(|()| None);
        };
        let preamble = usize::from(run.preamble.is_some());
        let (system, history) = request.chat_history.split_at_checked(preamble).unwrap_or_default();
        // What another hook made of the history is not mended: it is sent as it is, or not at all.
        let view = (history == run.expected).then(|| [system, &self.view(run.preamble.as_slice(), &[])].concat());
        let changed = view.filter(|view| *view != request.chat_history);
        let changed = changed.map(|view| {
            let mut request = request.clone();
            request.chat_history = view;
            request
        });
        let sent = changed.as_ref().unwrap_or(request);
        check(&self.window, sent)?;
        run.let_through.clone_from(&sent.chat_history);
        self.run = Some(run);
        Ok(changed)
    }

    /// Whether what was sent is what was let through, or would have been.
    pub(crate) fn sent(&mut self, id: RunId, request: &CompletionRequest) -> Result<(), Stop> {
        match &self.run {
            Some(run) if run.id == id && run.let_through != request.chat_history => {
                check(&self.window, request).map_err(|stop| Stop::Sent(Box::new(stop)))
            }
            _ => Ok(()),
        }
    }
}

/// What frees space, where that is due.
fn freeing<'w, C, St, B>(lanes: Lanes<'w, C, St, Externalized>, strategy: B) -> Option<Step<'w, St, FallBack<B>>>
where
    C: ContextState + 'w,
    C::Policy: Permitted<B, C, C>,
    B: Fallback,
{
    if !matches!(lanes.advice(), Advice::Prune(_) | Advice::FallBack(_)) {
        return None;
    }
    Some(match lanes.admit() {
        Ok(pass) => pass.fall_back(strategy),
        Err(refusal) => refusal.fall_back(strategy),
    })
}

impl Run {
    fn new(id: RunId, input: usize) -> Self {
        Self { id, spans: Vec::new(), input, preamble: None, expected: Vec::new(), let_through: Vec::new() }
    }

    /// The system text that rig puts before the history, where there is some.
    fn preamble_of<'m>(&self, request: &'m [Message]) -> Option<&'m str> {
        match request.first() {
            Some(Message::System { content })
                if request.len() == self.expected.len().saturating_add(1)
                    || request.first() != self.expected.first() =>
            {
                Some(content)
            }
            _ => None,
        }
    }
}
