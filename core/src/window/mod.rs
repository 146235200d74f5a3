//! The window: it owns the text, lends typed handles, and changes only after the store said yes.

mod abandon;
pub(crate) mod candidates;
mod cite;
mod close;
mod complete;
pub(crate) mod contents;
mod discard;
mod evict;
mod externalize;
mod gone;
mod import;
mod lanes;
mod migrate;
pub(crate) mod pointers;
mod policy;
mod prune;
mod reads;
mod rebuild;
mod recall;
mod recorded;
mod recover;
mod redact;
mod reground;
mod relations;
mod render;
mod restore;
mod resume;
mod seals;
pub(crate) mod step;
mod summarize;
pub(crate) mod table;

use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

pub use self::{
    abandon::{Abandon, Abandonment},
    complete::{Complete, Incomplete},
    contents::Derivation,
    discard::{Discard, Mutation},
    evict::{Evict, Selection},
    externalize::Externalize,
    gone::Loss,
    lanes::{Lane, Lanes, Lender},
    migrate::{LaneChange, Migration},
    policy::ChangePolicy,
    prune::{
        Advice, Apply, ApplyError, Draft, FallBack, FallBackError, Fallback, FellBack, FixedTemplate, Index,
        LargestToolOutput, Offer, OldestFirst, Outcome, Pass, Preview, Proposal, ProposalError, Refusal, Report, Stale,
        SupersededReads, Undo,
    },
    reads::Contradiction,
    recall::{AnswerRecall, Recall, RecallReply, Recalled},
    recover::Recovered,
    redact::{Authority, Redact, Redacted},
    reground::Reground,
    relations::{OpenCall, ResultState},
    render::{Message, Shown},
    restore::Restore,
    resume::{Uncommitted, Unsaved},
    step::{Operation, Step},
    summarize::{Escalation, Finish, ModelAnswer, Summarize, SummaryText},
};
use self::{contents::Contents, gone::Lossy};
pub(crate) use self::{
    externalize::{externalized, fresh_plan},
    prune::strategy_named,
    step::{at_once, run},
};
use crate::{
    Accounting, Budget, ByteEstimate, CachePrice, Certainty, CommitError, ContextState, Episode, JournalError,
    OpenError, PolicyVersion, Prices, SpanId, TokenCounter, Tombstone,
    journal::{self, Event, LaneRecord},
    policy::Permitted,
    rule::Open,
    store::{AsyncStore, Batch, Store},
    tool::RecallCall,
};

/// What the handles of one window share. The lock is never held while a store works.
pub struct Shared<St> {
    pub(crate) store: St,
    pub(crate) counter: Box<dyn TokenCounter>,
    contents: Mutex<Contents>,
}

impl<St> fmt::Debug for Shared<St> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl<St> Shared<St> {
    fn new(store: St, counter: impl TokenCounter + 'static, contents: Contents) -> Self {
        Self { store, counter: Box::new(counter), contents: Mutex::new(contents) }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Contents> {
        // Nothing of ours panics while it holds the lock; a counter of the user's that did left the contents unchanged.
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An agent's context window over a store: a projection of everything the episode ever held.
///
/// Text enters through the [`lanes`](Self::lanes), is written to the store by
/// [`externalize`](Lanes::externalize), and only then may leave, as a pointer that [`recall`](Self::recall) resolves.
pub struct Window<C: ContextState, St> {
    pub(crate) shared: Shared<St>,
    state: C,
}

/// Whether everything the window ever held can be brought back.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fidelity {
    /// Every span that left is in the store.
    Reversible,
    /// A declared mutation or an escalation broke the chain: no claim may rest on the window being complete.
    Lossy {
        /// The number of the log record since which it is so.
        since: u64,
        /// What broke it.
        cause: Loss,
        /// The reason that was given.
        why: String,
    },
}

impl<C: ContextState, St> Window<C, St> {
    /// Opens a window for a new episode and writes its first record; tokens are counted by [`ByteEstimate`].
    ///
    /// # Errors
    /// [`OpenError`]: the name is in use, the budget cannot work or breaks the struct's policy, or the store failed.
    pub fn open(store: St, episode: Episode) -> Result<Self, OpenError>
    where
        St: Store,
    {
        step::at_once(Self::open_async(store, episode, ByteEstimate))
    }

    /// As [`open`](Self::open), with a token counter of your own.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(store: St, episode: Episode, counter: impl TokenCounter + 'static) -> Result<Self, OpenError>
    where
        St: Store,
    {
        step::at_once(Self::open_async(store, episode, counter))
    }

    /// As [`open_with`](Self::open_with), on a store that answers later.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub async fn open_async(
        store: St,
        episode: Episode,
        counter: impl TokenCounter + 'static,
    ) -> Result<Self, OpenError>
    where
        St: AsyncStore,
    {
        let mut contents = Contents::prepared::<C>(episode, &counter)?;
        let records = store.length(&contents.episode).await.map_err(CommitError::from)?;
        if records > 0 {
            return Err(OpenError::Exists { episode: contents.episode, records });
        }
        let first = [opened::<C>(&contents, &counter), Event::Limited(contents.ceiling())];
        let first = contents.sealed(&first).map_err(|error| CommitError::Record(error.into()))?;
        let batch = Batch::new(contents.episode.clone(), 0, Vec::new(), vec![first.bytes]);
        store.commit(&batch).await.map_err(CommitError::from)?;
        contents.recorded(first.chain, 0, 0);
        let shared = Shared::new(store, counter, contents);
        Ok(Self { shared, state: C::declare(crate::state::spans) })
    }

    /// Lends one typed handle per lane. The borrow is exclusive: nothing else touches the window meanwhile, and dropping
    /// the handles keeps the text.
    pub fn lanes(&mut self) -> Lanes<'_, C, St, Open> {
        Lanes::lend(&self.shared)
    }

    /// The state struct, for its `#[context(skip)]` fields.
    pub fn state(&self) -> &C {
        &self.state
    }

    /// The state struct, to change its `#[context(skip)]` fields. Its `Spans` fields hold no text and cannot be made.
    pub fn state_mut(&mut self) -> &mut C {
        &mut self.state
    }

    /// The text of any span of this episode, whether it is in the window or not, verified against its SHA-256 when it
    /// comes from the store (rule R2). Nothing changes; [`Lane::restore`] puts it back into the window. O(its length).
    ///
    /// # Errors
    /// [`RecallError`](crate::RecallError): no such span, one that was removed for good, or the store failed.
    pub fn recall(&self, span: SpanId) -> Step<'_, St, Recall> {
        Step::new(&self.shared, Recall(span))
    }

    /// Answers a model that recalls: pointers tell it to, so offer it [`RecallCall::tool`] beside the agent's own tools.
    ///
    /// An evicted span that is asked for whole comes back to its place with its exchange, as by [`Lane::restore`], where
    /// all of that takes at most `limit` tokens and the budget has room. Otherwise, and where a part is asked for, the reply
    /// is an excerpt: exact lines under a line that says which, together at most `limit` tokens and no more than the budget
    /// has room for, by the window's own counter (rule R25); where that is nothing, the one line says so. Either way it is
    /// the text as it entered, verified, and never a second look at the world (rules R2, R8). An excerpt changes nothing.
    ///
    /// ```
    /// # use keepspan::{ContextState, Episode, NewSpan, Spans, Window, store::MemoryStore};
    /// use keepspan::tool::{Anthropic, RecallCall};
    /// # #[derive(ContextState)]
    /// # struct Agent { #[instruction(roles("user"))] rules: Spans, #[evictable(otherwise)] work: Spans }
    /// # fn call_the_model(_tools: &[serde_json::Value]) -> serde_json::Value {
    /// #     serde_json::json!({ "type": "message", "stop_reason": "tool_use", "content": [{ "type": "tool_use", "id": "t1",
    /// #         "name": "recall_span", "input": { "span": "s1", "from_line": 2, "to_line": 3, "search": null } }] })
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let mut window = Window::<Agent, _>::open(MemoryStore::default(), Episode::new("e", "p"))?;
    /// # let id = window.lanes().route(NewSpan::tool("read", "one\ntwo\nthree\nfour\n"))?;
    /// # window.lanes().externalize().wait()?.work.evict(id).wait()?;
    ///
    /// let response = call_the_model(&[RecallCall::tool(Anthropic)]);
    /// window.lanes().route(NewSpan::model(response["content"].to_string()).calls(["t1"]))?;
    /// for call in RecallCall::read(Anthropic, &response)? {
    ///     let result = match window.answer_recall(&call, 2_000).wait() {
    ///         Ok(reply) => NewSpan::from(reply),
    ///         Err(error) => call.failed(&error), // "s99 does not exist: .."
    ///     };
    ///     window.lanes().route(result)?;
    /// }
    /// let shown = window.render();
    /// assert_eq!(shown[2].content().as_text(), Some("[s1 work: lines 2 to 3 of 4]\ntwo\nthree\n"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RecallError`](crate::RecallError), which [`RecallCall::failed`](crate::tool::RecallCall::failed) tells the model: the
    /// call asks for nothing, no such span, one that was removed for good, or the store failed.
    ///
    /// [`RecallCall::tool`]: crate::tool::RecallCall::tool
    pub fn answer_recall(&mut self, call: &RecallCall, limit: u64) -> Step<'_, St, AnswerRecall> {
        Step::new(&self.shared, AnswerRecall { call: call.clone(), limit })
    }

    /// Logs a new model, prompt or policy version; tombstones carry it from now on (rule R22).
    pub fn change_policy(&mut self, policy: impl Into<PolicyVersion>) -> Step<'_, St, ChangePolicy> {
        Step::new(&self.shared, ChangePolicy(policy.into()))
    }

    /// The policy version in force.
    pub fn policy(&self) -> PolicyVersion {
        self.shared.lock().policy.clone()
    }

    /// Where a summary comes from, whether it is in the window or not; `None` for a first-hand span (rule R5).
    pub fn derivation(&self, summary: SpanId) -> Option<Derivation> {
        self.shared.lock().derivations.get(&summary).cloned()
    }

    /// What a model would be sent now, in a stable order, pointers in place. O(window). The ids of calls are not in it: where a
    /// provider wants them back, keep them by the [`SpanId`] of the push, which [`Message::shown`] has.
    pub fn render(&self) -> Vec<Message> {
        self.shared.lock().render()
    }

    /// The tokens that [`render`](Self::render) takes, without the budget's fixed part, which a trigger and the numbers of
    /// the gate include: the same count for every purpose (rule R25). O(1).
    pub fn utilization(&self) -> u64 {
        self.shared.lock().utilization
    }

    /// How far [`utilization`](Self::utilization) can be trusted: no further than the least certain count in it.
    pub fn certainty(&self) -> Certainty {
        self.shared.lock().certainty
    }

    /// The budget, when there is one.
    pub fn budget(&self) -> Option<Budget> {
        self.shared.lock().budget
    }

    /// What is free: the limit without the fixed part and the window; negative when the request is too large, `None`
    /// without a budget. In tokens.
    pub fn headroom(&self) -> Option<i64> {
        let contents = self.shared.lock();
        let headroom = i128::from(contents.budget?.limit()).saturating_sub(i128::from(contents.request()));
        Some(i64::try_from(headroom).unwrap_or(if headroom < 0 { i64::MIN } else { i64::MAX }))
    }

    /// What the provider charges for a changed prefix: from now on a pass below the trigger has to pay for it (rule R11).
    pub fn set_cache_price(&mut self, price: Option<CachePrice>) {
        self.shared.lock().cache = price;
    }

    /// What pruning cost and freed so far.
    pub fn accounting(&self) -> Accounting {
        self.shared.lock().ledger.accounting.clone()
    }

    /// What a pass is expected to cost: the policy's numbers at first, then what passes really cost.
    pub fn prices(&self) -> Prices {
        self.shared.lock().ledger.prices()
    }

    /// Brings back everything that a pass or a fallback took, in one commit: a proposal is as reversible as it is
    /// previewable.
    pub fn undo(&mut self, report: &Report) -> Step<'_, St, Undo> {
        Step::new(&self.shared, report.into())
    }

    /// Removes texts of any lane from the window and the store for good, on somebody's authority: as
    /// [`Lane::redact`], for what a protected lane should never have held. Who, and why, is logged (rule R23).
    ///
    /// # Errors
    /// [`RedactError`](crate::RedactError): no such span, or one that was removed already; the commit failed.
    pub fn redact_protected(
        &mut self,
        spans: impl Into<Selection>,
        mutation: Mutation,
        authority: Authority,
    ) -> Step<'_, St, Redact>
    where
        C::Policy: Permitted<Mutation, C, C> + Permitted<Authority, C, C>,
    {
        Step::new(&self.shared, Redact { lane: None, spans: spans.into().ids, mutation, authority: Some(authority) })
    }

    /// Whether everything that left can be brought back (rule R23).
    pub fn fidelity(&self) -> Fidelity {
        fidelity(&self.shared.lock())
    }

    /// Every tombstone of this episode, oldest first, read from the store. O(log of the episode).
    ///
    /// # Errors
    /// When the store cannot be read, or a record is damaged.
    pub async fn tombstones_async(&self) -> Result<Vec<Tombstone>, JournalError>
    where
        St: AsyncStore,
    {
        let episode = self.shared.lock().episode.clone();
        journal::tombstones(&self.shared.store, &episode).await
    }

    /// As [`tombstones_async`](Self::tombstones_async), on a store that answers at once.
    ///
    /// # Errors
    /// As [`tombstones_async`](Self::tombstones_async).
    pub fn tombstones(&self) -> Result<Vec<Tombstone>, JournalError>
    where
        St: Store,
    {
        step::at_once(self.tombstones_async())
    }
}

impl<C: ContextState, St> fmt::Debug for Window<C, St> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let contents = self.shared.lock();
        f.debug_struct("Window")
            .field("state", &C::NAME)
            .field("episode", &contents.episode)
            .field("spans", &contents.table.len())
            .field("utilization", &contents.utilization)
            .finish_non_exhaustive()
    }
}

/// What can be said of everything that left.
pub(crate) fn fidelity(contents: &Contents) -> Fidelity {
    match &contents.lossy {
        None => Fidelity::Reversible,
        Some(Lossy { record, cause, reason }) => Fidelity::Lossy { since: *record, cause: *cause, why: reason.clone() },
    }
}

fn opened<C: ContextState>(contents: &Contents, counter: &dyn TokenCounter) -> Event {
    Event::Opened {
        state: C::NAME.to_owned(),
        lanes: LaneRecord::all(contents.lanes),
        policy: contents.policy.clone(),
        probe: Contents::probe(counter),
    }
}
