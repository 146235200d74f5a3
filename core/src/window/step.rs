//! One write path: a step plans, commits one atomic batch, and only then changes the window.

use std::{
    future::{Future, IntoFuture},
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use super::{Shared, contents::Contents};
use crate::{
    CommitError, Content, SpanId, TokenCounter,
    record::Event,
    store::{AsyncStore, Batch, Blob, Store, StoreError, fetch},
};

/// A transition of the window that has not happened yet. It happens in [`wait`](Step::wait), or in `.await`: one atomic
/// commit, then the change. When it fails, the window is as it was.
///
/// Dropping a step does nothing. Dropping its *future* in the middle of a commit leaves the window unchanged and refuses
/// further steps with [`CommitError::Interrupted`], since only the store knows whether the commit happened.
#[must_use = "a step does nothing until `.wait()?` or `.await?`"]
pub struct Step<'w, St, O> {
    shared: &'w Shared<St>,
    operation: O,
}

/// What a [`Step`] does; one type for each transition.
pub trait Operation<'w, St>: Send + 'w {
    /// What a finished step gives.
    type Output;
    /// What a refused or failed step gives.
    type Error: From<CommitError> + 'static;
    #[doc(hidden)]
    type Effect: Send;
    #[doc(hidden)]
    fn plan(self, contents: &Contents, counter: &dyn TokenCounter) -> Result<Plan<Self::Effect>, Self::Error>;
    #[doc(hidden)]
    fn apply(
        effect: Self::Effect,
        fetched: Vec<Vec<u8>>,
        contents: &mut Contents,
        shared: &'w Shared<St>,
    ) -> Self::Output;
}

/// What a transition reads and writes, and the change in the window that follows.
#[derive(Debug)]
pub struct Plan<E> {
    /// Blobs to read and verify first.
    pub(crate) fetch: Vec<crate::Digest>,
    /// Blobs to write, with the spans they belong to; read back after the commit.
    pub(crate) blobs: Vec<(SpanId, Blob)>,
    pub(crate) events: Vec<Event>,
    pub(crate) effect: E,
}

impl<E> Plan<E> {
    pub(crate) fn new(effect: E) -> Self {
        Self { fetch: Vec::new(), blobs: Vec::new(), events: Vec::new(), effect }
    }
}

impl<'w, St, O> Step<'w, St, O> {
    pub(crate) fn new(shared: &'w Shared<St>, operation: O) -> Self {
        Self { shared, operation }
    }

    /// Runs the step on a store that answers at once.
    ///
    /// # Errors
    /// The operation's own error; the window is as it was.
    pub fn wait(self) -> Result<O::Output, O::Error>
    where
        St: Store,
        O: Operation<'w, St>,
    {
        at_once(run(self.shared, self.operation))
    }
}

impl<St, O> std::fmt::Debug for Step<'_, St, O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Step").finish_non_exhaustive()
    }
}

impl<'w, St: AsyncStore, O: Operation<'w, St>> IntoFuture for Step<'w, St, O> {
    type Output = Result<O::Output, O::Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'w>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(run(self.shared, self.operation))
    }
}

/// Drives a future over a [`Store`], which never waits: the first poll is the last.
pub(crate) fn at_once<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::yield_now(),
        }
    }
}

/// Marks the window as committing. Dropped before the commit began, or after the store answered, it clears the mark;
/// dropped in between, the mark stays, since only the store knows.
struct Committing<'w, St> {
    shared: &'w Shared<St>,
    unanswered: bool,
}

impl<St> Drop for Committing<'_, St> {
    fn drop(&mut self) {
        if !self.unanswered {
            self.shared.lock().committing = false;
        }
    }
}

async fn run<'w, St, O>(shared: &'w Shared<St>, operation: O) -> Result<O::Output, O::Error>
where
    St: AsyncStore,
    O: Operation<'w, St>,
{
    let (plan, batch) = prepare(shared, operation)?;
    let mut committing = batch.as_ref().map(|_| Committing { shared, unanswered: false });
    let fetched = if plan.fetch.is_empty() {
        Vec::new()
    } else {
        fetch(&shared.store, &plan.fetch).await.map_err(CommitError::from)?
    };
    if let (Some(batch), Some(committing)) = (&batch, &mut committing) {
        committing.unanswered = true;
        let answer = shared.store.commit(batch).await;
        committing.unanswered = matches!(answer, Err(StoreError::Unacknowledged));
        answer.map_err(CommitError::from)?;
        let written = u64::try_from(batch.records().len()).unwrap_or(u64::MAX);
        let mut contents = shared.lock();
        contents.length = contents.length.saturating_add(written);
    }
    read_back(&shared.store, &plan.blobs).await?;
    drop(committing);
    Ok(O::apply(plan.effect, fetched, &mut shared.lock(), shared))
}

type Prepared<E> = (Plan<E>, Option<Batch>);

fn prepare<'w, St, O>(shared: &'w Shared<St>, operation: O) -> Result<Prepared<O::Effect>, O::Error>
where
    O: Operation<'w, St>,
{
    let mut contents = shared.lock();
    if contents.committing {
        return Err(CommitError::Interrupted { episode: contents.episode.clone() }.into());
    }
    let plan = operation.plan(&contents, &*shared.counter)?;
    if plan.events.is_empty() {
        return Ok((plan, None));
    }
    let records = plan.events.iter().map(serde_json::to_vec).collect::<Result<_, _>>().map_err(CommitError::Record)?;
    let blobs = plan.blobs.iter().map(|(_, blob)| blob.clone()).collect();
    let batch = Batch::new(contents.episode.clone(), contents.length, blobs, records);
    contents.committing = true;
    Ok((plan, Some(batch)))
}

/// How many blobs are read back at once, so that a large externalization does not double the memory.
const READ_BACK: usize = 64;

/// Reads every written blob back and compares it with the window's own bytes: stronger than a second hash, and cheaper.
async fn read_back<St: AsyncStore>(store: &St, blobs: &[(SpanId, Blob)]) -> Result<(), CommitError> {
    for group in blobs.chunks(READ_BACK) {
        let digests: Vec<_> = group.iter().map(|(_, blob)| *blob.digest()).collect();
        let found = store.get_many(&digests).await?;
        for (at, (span, blob)) in group.iter().enumerate() {
            if found.get(at).is_none_or(|bytes| bytes != blob.bytes()) {
                return Err(CommitError::ReadBack { span: *span, digest: *blob.digest() });
            }
        }
    }
    Ok(())
}

/// The text or bytes that a blob holds.
pub(crate) fn content(bytes: Vec<u8>, text: bool) -> Content {
    if !text {
        return Content::from(bytes);
    }
    match String::from_utf8(bytes) {
        Ok(text) => Content::from(text),
        // The digest matched, so these are the bytes that were pushed as text; kept as bytes rather than lost.
        Err(error) => Content::from(error.into_bytes()),
    }
}
