//! One write path: a step plans, commits one atomic batch, and only then changes the window.

use std::{
    future::{Future, IntoFuture},
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use super::{
    Shared,
    contents::{Commit, Contents},
    gone::Loss,
};
use crate::{
    CommitError, Content, Digest, SpanId, TokenCounter,
    journal::{Event, Sealed},
    store::{AsyncStore, Batch, Blob, Claim, Store, StoreError, fetch},
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
    /// Whether its blobs are committed and read back before its records are written.
    #[doc(hidden)]
    const BLOBS_FIRST: bool = false;
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
    pub(crate) fetch: Vec<Digest>,
    /// Blobs to write, with the spans they belong to, none for what an action gave; read back after the commit.
    pub(crate) blobs: Vec<(Option<SpanId>, Blob)>,
    /// Blobs that the store is to seal, where it has them.
    pub(crate) seals: Vec<Digest>,
    /// Signatures that the commit takes, each of which must be free.
    pub(crate) claims: Vec<Claim>,
    /// What the commit's one record says; without any, nothing is committed.
    pub(crate) events: Vec<Event>,
    pub(crate) effect: E,
}

impl<E> Plan<E> {
    pub(crate) fn new(effect: E) -> Self {
        Self { fetch: Vec::new(), blobs: Vec::new(), seals: Vec::new(), claims: Vec::new(), events: Vec::new(), effect }
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

/// Marks the window as committing. Dropped while the store has not answered, it leaves the window interrupted, since
/// only the store knows whether the commit happened.
struct Committing<'w, St> {
    shared: &'w Shared<St>,
    unanswered: bool,
}

impl<St> Drop for Committing<'_, St> {
    fn drop(&mut self) {
        self.shared.lock().commit = if self.unanswered { Commit::Interrupted } else { Commit::Idle };
    }
}

/// The record of a commit, with how many names and notes it takes along.
struct Record {
    sealed: Sealed,
    along: (usize, usize),
    claims: Vec<Claim>,
}

impl<St: AsyncStore> Committing<'_, St> {
    /// Commits blobs and the record and reads the blobs back; the record waits for that where it must.
    async fn write(
        &mut self,
        blobs: &[(Option<SpanId>, Blob)],
        seals: Vec<Digest>,
        record: Record,
        blobs_first: bool,
    ) -> Result<(), CommitError> {
        let (episode, length) = {
            let contents = self.shared.lock();
            (contents.episode.clone(), contents.length)
        };
        let seals = there(&self.shared.store, seals).await?;
        let mut written = blobs.iter().map(|(_, blob)| blob.clone()).collect();
        let blobs_first = blobs_first && !blobs.is_empty();
        if blobs_first {
            self.commit(&Batch::new(episode.clone(), length, std::mem::take(&mut written), Vec::new())).await?;
            read_back(&self.shared.store, blobs).await?;
        }
        let Record { sealed: Sealed { bytes, chain }, along: (names, notes), claims } = record;
        let batch = Batch::new(episode, length, written, vec![bytes]).sealing(seals).claiming(claims);
        self.shared.lock().unanswered.push(chain);
        let answer = self.commit(&batch).await;
        // A refusal is an answer too.
        if answer.is_err() && !self.unanswered {
            self.shared.lock().unanswered.pop();
        }
        answer?;
        self.shared.lock().recorded(chain, names, notes);
        if blobs_first { Ok(()) } else { read_back(&self.shared.store, blobs).await }
    }

    async fn commit(&mut self, batch: &Batch) -> Result<(), CommitError> {
        self.unanswered = true;
        let answer = self.shared.store.commit(batch).await;
        self.unanswered = matches!(answer, Err(StoreError::Unacknowledged));
        Ok(answer?)
    }
}

/// One transition: planned, committed, then made.
pub(crate) async fn run<'w, St, O>(shared: &'w Shared<St>, operation: O) -> Result<O::Output, O::Error>
where
    St: AsyncStore,
    O: Operation<'w, St>,
{
    let (Plan { fetch: wanted, blobs, seals, effect, .. }, mut committing, record) = prepare(shared, operation)?;
    let fetched = if wanted.is_empty() {
        Vec::new()
    } else {
        fetch(&shared.store, &wanted).await.map_err(|error| unverified(shared, error))?
    };
    if let (Some(committing), Some(record)) = (&mut committing, record) {
        committing.write(&blobs, seals, record, O::BLOBS_FIRST).await?;
    }
    // The window stays reserved until the change is in it.
    let done = O::apply(effect, fetched, &mut shared.lock(), shared);
    drop(committing);
    Ok(done)
}

/// A span that the store does not give back breaks the claim that every span can be brought back.
fn unverified<St>(shared: &Shared<St>, error: StoreError) -> CommitError {
    let mut contents = shared.lock();
    match error {
        StoreError::Missing { .. } | StoreError::Corrupt { .. } => {
            contents.mark_lossy(Loss::Unverified, error.to_string());
        }
        StoreError::Sealed { digest } => {
            if let Some((span, _)) = contents.holders(&[digest].into()).first().copied() {
                let error = CommitError::Sealed { span, digest };
                contents.mark_lossy(Loss::Mutated, error.to_string());
                return error;
            }
        }
        _ => {}
    }
    error.into()
}

type Prepared<'w, St, E> = (Plan<E>, Option<Committing<'w, St>>, Option<Record>);

/// Plans, and reserves the window for the commit when there is something to write. What only reads is never refused.
fn prepare<'w, St, O>(shared: &'w Shared<St>, operation: O) -> Result<Prepared<'w, St, O::Effect>, O::Error>
where
    O: Operation<'w, St>,
{
    let mut contents = shared.lock();
    let mut plan = operation.plan(&contents, &*shared.counter)?;
    if plan.events.is_empty() {
        return Ok((plan, None, None));
    }
    contents.is_idle()?;
    let sealed = contents.sealed(&plan.events).map_err(|error| CommitError::Record(error.into()))?;
    let record = Record { sealed, along: contents.taken_along(), claims: std::mem::take(&mut plan.claims) };
    for span in plan.blobs.iter().filter_map(|(span, _)| *span) {
        if let Some(entry) = contents.table.get_mut(span) {
            entry.offered = true;
        }
    }
    contents.commit = Commit::Running;
    Ok((plan, Some(Committing { shared, unanswered: false }), Some(record)))
}

/// How many blobs are read back at once, so that a large externalization does not double the memory.
const READ_BACK: usize = 64;

/// Reads every written blob back and compares it with the window's own bytes: stronger than a second hash, and cheaper.
async fn read_back<St: AsyncStore>(store: &St, blobs: &[(Option<SpanId>, Blob)]) -> Result<(), CommitError> {
    for group in blobs.chunks(READ_BACK) {
        let digests: Vec<_> = group.iter().map(|(_, blob)| *blob.digest()).collect();
        let found = match store.get_many(&digests).await {
            // What an action gave, and the text of it was redacted before: on record all the same, and not in the store.
            Err(StoreError::Sealed { .. }) if matches!(group, [(None, _)]) => continue,
            found => found.map_err(|error| named(error, group))?,
        };
        for (at, (span, blob)) in group.iter().enumerate() {
            if found.get(at).is_none_or(|bytes| bytes != blob.bytes()) {
                let digest = *blob.digest();
                return Err(match *span {
                    Some(span) => CommitError::ReadBack { span, digest },
                    None => StoreError::Corrupt { digest }.into(),
                });
            }
        }
    }
    Ok(())
}

/// A sealed text by its span.
fn named(error: StoreError, group: &[(Option<SpanId>, Blob)]) -> CommitError {
    if let StoreError::Sealed { digest } = error
        && let Some(span) = group.iter().find(|(_, blob)| *blob.digest() == digest).and_then(|(span, _)| *span)
    {
        return CommitError::Sealed { span, digest };
    }
    error.into()
}

/// The digests among these that the store has: a seal of another would be a trace of a text that was never there.
async fn there<S: AsyncStore>(store: &S, digests: Vec<Digest>) -> Result<Vec<Digest>, CommitError> {
    let mut there = Vec::with_capacity(digests.len());
    for digest in digests {
        match store.get_many(&[digest]).await {
            Err(StoreError::Missing { .. }) => {}
            Ok(_) | Err(StoreError::Sealed { .. } | StoreError::Corrupt { .. }) => there.push(digest),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(there)
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
