#![doc = include_str!("../README.md")]

mod error;
mod gate;
mod piece;
mod recall;
mod run;
mod transcript;
mod view;

use std::{fmt, ops::DerefMut, sync::Arc};

use futures_util::lock::{Mutex, MutexGuard};
use keepspan::{ContextState, Fallback, OldestFirst, Tombstone, Window, policy::Permitted, store::AsyncStore};
use rig_agent::agent::{
    AgentHook, CompletionCallAction, CompletionCallEvent, DispatchAction, DispatchEvent, HookContext, OutcomeAction,
    OutcomeEvent, RequestPatch, RunSettled, StepEventKind,
};
use rig_core::{completion::CompletionRequest, effect::EffectKind, message::Message};

use self::run::Shared;
pub use self::{
    error::Stop,
    recall::{NotRecalled, RecallSpan},
};

/// The kind of the run's entries that are tombstones, as JSON.
pub const TOMBSTONE: &str = "keepspan.tombstone";

/// A window as a hook of rig: every message of a run enters it once, every request is a view of it, and one that lacks what
/// must not be lost is not sent. Cloning gives another handle of the same window.
///
/// Add it as the last hook, so that nothing changes a request after it was checked. Runs on one window are one conversation:
/// one at a time, whether they are given its history or not.
pub struct Keepspan<C: ContextState, St, B = OldestFirst> {
    shared: Arc<Mutex<Shared<C, St>>>,
    strategy: B,
}

impl<C: ContextState, St, B: Clone> Clone for Keepspan<C, St, B> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), strategy: self.strategy.clone() }
    }
}

impl<C: ContextState, St, B> fmt::Debug for Keepspan<C, St, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keepspan").field("state", &C::NAME).finish_non_exhaustive()
    }
}

impl<C: ContextState, St: AsyncStore> Keepspan<C, St> {
    /// A hook over a window, opened or resumed. Where its trigger is reached and no model decided, spans leave by
    /// [`OldestFirst`].
    pub fn new(window: Window<C, St>) -> Self {
        Self { shared: Arc::new(Mutex::new(Shared::new(window))), strategy: OldestFirst }
    }
}

impl<C: ContextState, St: AsyncStore, B> Keepspan<C, St, B> {
    /// Frees space in another order.
    pub fn falling_back<To: Fallback>(self, strategy: To) -> Keepspan<C, St, To>
    where
        C::Policy: Permitted<To, C, C>,
    {
        Keepspan { shared: self.shared, strategy }
    }

    /// The window: to push to it, to let a model decide what leaves, to recall. A run's next request waits for as long as this
    /// is held.
    pub async fn window(&self) -> impl DerefMut<Target = Window<C, St>> + '_ {
        MutexGuard::map(self.shared.lock().await, |shared| &mut shared.window)
    }

    /// The tool by which the model brings back what a pointer stands for, at most `limit` tokens an answer: for
    /// `AgentBuilder::tool`.
    pub fn recall(&self, limit: u64) -> RecallSpan<C, St> {
        RecallSpan { shared: self.shared.clone(), limit }
    }

    /// Why the newest run was stopped, if it was by this hook; also where what it said last could not be committed.
    pub async fn stopped(&self) -> Option<Arc<Stop>> {
        self.shared.lock().await.stopped.clone()
    }

    /// The window again, to close it.
    ///
    /// # Errors
    /// This handle, where it is not the only one: an agent that has it as a hook or a tool is another one.
    pub fn into_window(self) -> Result<Window<C, St>, Self> {
        let Self { shared, strategy } = self;
        let shared = Arc::try_unwrap(shared).map_err(|shared| Self { shared, strategy })?;
        Ok(shared.into_inner().window)
    }
}

impl<C, St, B> Keepspan<C, St, B>
where
    C: ContextState + Send + Sync + 'static,
    C::Policy: Permitted<B, C, C>,
    St: AsyncStore + 'static,
    B: Fallback + Copy + Sync,
{
    /// What is new of the run enters, is committed, and only then spans leave; gives the history to send, where it is another.
    async fn view(&self, ctx: &HookContext, event: CompletionCallEvent<'_>) -> Result<Option<Vec<Message>>, Stop> {
        let mut shared = self.shared.lock().await;
        shared.enter(ctx.run_id(), event.history, event.prompt).await?;
        note(ctx, &shared.commit(self.strategy).await?);
        let history = shared.history(event.prompt);
        Ok((history != event.history).then_some(history))
    }

    /// The request as it may be sent, where that is another.
    async fn gate(&self, ctx: &HookContext, request: &CompletionRequest) -> Result<Option<CompletionRequest>, Stop> {
        let mut shared = self.shared.lock().await;
        if shared.preamble(ctx.run_id(), request)? {
            note(ctx, &shared.commit(self.strategy).await?);
        }
        shared.let_through(ctx.run_id(), request)
    }

    async fn stop(&self, stop: Stop) -> String {
        self.shared.lock().await.stop(stop)
    }
}

impl<C, St, B> AgentHook for Keepspan<C, St, B>
where
    C: ContextState + Send + Sync + 'static,
    C::Policy: Permitted<B, C, C>,
    St: AsyncStore + 'static,
    B: Fallback + Copy + Sync,
{
    async fn on_completion_call(&self, ctx: &HookContext, event: CompletionCallEvent<'_>) -> CompletionCallAction {
        match self.view(ctx, event).await {
            Ok(None) => CompletionCallAction::continue_run(),
            Ok(Some(history)) => CompletionCallAction::patch(RequestPatch::new().history(history)),
            Err(stop) => CompletionCallAction::stop(self.stop(stop).await),
        }
    }

    async fn on_dispatch(&self, ctx: &HookContext, event: DispatchEvent<'_>) -> DispatchAction {
        let EffectKind::Completion { request, stream } = event.kind else { return DispatchAction::proceed() };
        match self.gate(ctx, request).await {
            Ok(None) => DispatchAction::proceed(),
            Ok(Some(request)) => DispatchAction::patch(EffectKind::Completion { request, stream: *stream }),
            Err(stop) => DispatchAction::stop(self.stop(stop).await),
        }
    }

    async fn on_outcome(&self, ctx: &HookContext, event: OutcomeEvent<'_>) -> OutcomeAction {
        let EffectKind::Completion { request, .. } = event.kind else { return OutcomeAction::proceed() };
        let sent = self.shared.lock().await.sent(ctx.run_id(), request);
        match sent {
            Ok(()) => OutcomeAction::proceed(),
            Err(stop) => OutcomeAction::stop(self.stop(stop).await),
        }
    }

    async fn on_run_settled(&self, ctx: &HookContext, event: RunSettled<'_>) {
        let mut shared = self.shared.lock().await;
        let settled = match shared.settle(ctx.run_id(), event.messages.unwrap_or_default()) {
            Ok(()) => shared.externalize().await,
            failed => failed,
        };
        // The run is over, so it cannot be stopped; the text is in the window, and the next run commits it.
        if let Err(stop) = settled {
            shared.stop(stop);
        }
    }

    fn observes(&self, kind: StepEventKind) -> bool {
        matches!(kind, StepEventKind::RunSettled | StepEventKind::CompletionCall | StepEventKind::CompletionDispatch)
    }
}

/// What left travels with the run as well.
fn note(ctx: &HookContext, left: &[Tombstone]) {
    for tombstone in left {
        // A record that could not be encoded is in the store all the same.
        ctx.append_entry(TOMBSTONE, tombstone).ok();
    }
}
