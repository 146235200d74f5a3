//! What several end-to-end tests use: a state struct with every kind, and a store that fails on demand.

pub mod acts;
pub mod crash;
mod same;

use std::{
    future::poll_fn,
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
};

use keepspan::{
    ContextState, CounterError, Digest, EpisodeId, Spans, TokenCount, TokenCounter,
    store::{Batch, MemoryStore, Store, StoreError},
};

pub use self::same::{Seen, now, spans, unsaved};

/// One lane of each kind.
#[derive(ContextState)]
#[context(budget = 10_000)]
pub struct Agent {
    /// House rules.
    #[instruction(roles("system", "user"))]
    pub rules: Spans,
    /// What the schema said.
    #[precondition(tools("describe_table", "describe_*"))]
    pub schema: Spans,
    /// What must hold.
    #[invariant]
    pub holds: Spans,
    /// Limits.
    #[constraint(pinned)]
    pub limits: Spans,
    /// Which environment.
    #[scope_qualifier]
    pub target: Spans,
    /// What failed.
    #[negative_result(on_error)]
    pub failed: Spans,
    /// Diffs and reads.
    #[evictable(otherwise)]
    pub work: Spans,
    /// What pruning wrote.
    #[rationale]
    pub decisions: Spans,
    /// Summaries.
    #[derived]
    pub recap: Spans,
}

/// A store over memory that fails, damages or forgets when it is told to.
#[derive(Debug, Default)]
pub struct Faulty {
    inner: MemoryStore,
    /// Calls left before one fails; 0 is off.
    countdown: AtomicU64,
    /// What the failing call does.
    damage: AtomicU64,
}

/// How a call of a [`Faulty`] store goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An error, and nothing happened.
    Fails,
    /// It happened, and the answer was lost.
    Unacknowledged,
    /// One bit of each blob or claim read is flipped.
    BitFlip,
    /// Half of each blob or claim read is missing.
    ShortRead,
    /// The disk is full, and nothing happened.
    OutOfSpace,
    /// The store itself finds each blob read damaged.
    Damaged,
}

impl Faulty {
    /// A store whose `nth` call from now goes wrong, once.
    pub fn arm(&self, nth: u64, fault: Fault) {
        self.damage.store(fault as u64, Ordering::SeqCst);
        self.countdown.store(nth, Ordering::SeqCst);
    }

    fn due(&self) -> Option<Fault> {
        let hit = self.countdown.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)) == Ok(1);
        let fault =
            [Fault::Fails, Fault::Unacknowledged, Fault::BitFlip, Fault::ShortRead, Fault::OutOfSpace, Fault::Damaged];
        let at = usize::try_from(self.damage.load(Ordering::SeqCst)).ok();
        at.filter(|_| hit).and_then(|at| fault.get(at).copied())
    }
}

fn failure() -> StoreError {
    StoreError::backend("told to fail")
}

fn full() -> StoreError {
    StoreError::Io { path: "full".into(), source: io::ErrorKind::StorageFull.into() }
}

impl Store for Faulty {
    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        match self.due() {
            Some(Fault::Fails) => Err(failure()),
            Some(Fault::OutOfSpace) => Err(full()),
            Some(Fault::Unacknowledged) => self.inner.commit(batch).and(Err(StoreError::Unacknowledged)),
            _ => self.inner.commit(batch),
        }
    }

    fn get(&self, digest: &Digest) -> Result<Vec<u8>, StoreError> {
        let fault = self.due();
        if fault == Some(Fault::Fails) {
            return Err(failure());
        }
        if fault == Some(Fault::Damaged) {
            return Err(StoreError::Corrupt { digest: *digest });
        }
        let mut bytes = self.inner.get(digest)?;
        match fault {
            Some(Fault::BitFlip) => {
                if let Some(byte) = bytes.first_mut() {
                    *byte ^= 1;
                }
            }
            Some(Fault::ShortRead) => bytes.truncate(bytes.len() / 2),
            _ => {}
        }
        Ok(bytes)
    }

    fn read(&self, episode: &EpisodeId, from: u64, most: u64) -> Result<Vec<Vec<u8>>, StoreError> {
        if self.due() == Some(Fault::Fails) { Err(failure()) } else { self.inner.read(episode, from, most) }
    }

    fn length(&self, episode: &EpisodeId) -> Result<u64, StoreError> {
        if self.due() == Some(Fault::Fails) { Err(failure()) } else { self.inner.length(episode) }
    }

    fn holders(&self, signatures: &[Digest]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let fault = self.due();
        if matches!(fault, Some(Fault::Fails | Fault::Damaged)) {
            return Err(failure());
        }
        let mut holders = self.inner.holders(signatures)?;
        for holder in holders.iter_mut().flatten() {
            match fault {
                Some(Fault::BitFlip) => {
                    if let Some(byte) = holder.last_mut() {
                        *byte ^= 1;
                    }
                }
                Some(Fault::ShortRead) => holder.truncate(holder.len() / 2),
                _ => {}
            }
        }
        Ok(holders)
    }
}

/// A store that counts what it is asked.
#[derive(Debug, Default)]
pub struct Counting<S> {
    inner: S,
    commits: AtomicU64,
    gets: AtomicU64,
    reads: AtomicU64,
}

impl<S> Counting<S> {
    /// Counts what `inner` is asked from now on.
    pub fn new(inner: S) -> Self {
        Self { inner, commits: AtomicU64::new(0), gets: AtomicU64::new(0), reads: AtomicU64::new(0) }
    }

    /// The calls of `commit` since the last call of this: durable writes, refused ones too.
    pub fn commits(&self) -> u64 {
        self.commits.swap(0, Ordering::SeqCst)
    }

    /// The blobs that were read, one by one or together, since the last call of this.
    pub fn gets(&self) -> u64 {
        self.gets.swap(0, Ordering::SeqCst)
    }

    /// The calls of `read`, `length` and `holders` since the last call of this.
    pub fn reads(&self) -> u64 {
        self.reads.swap(0, Ordering::SeqCst)
    }
}

impl<S: Store> Store for Counting<S> {
    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        self.commits.fetch_add(1, Ordering::SeqCst);
        self.inner.commit(batch)
    }

    fn get(&self, digest: &Digest) -> Result<Vec<u8>, StoreError> {
        self.gets.fetch_add(1, Ordering::SeqCst);
        self.inner.get(digest)
    }

    fn get_many(&self, digests: &[Digest]) -> Result<Vec<Vec<u8>>, StoreError> {
        self.gets.fetch_add(digests.len() as u64, Ordering::SeqCst);
        self.inner.get_many(digests)
    }

    fn read(&self, episode: &EpisodeId, from: u64, most: u64) -> Result<Vec<Vec<u8>>, StoreError> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.inner.read(episode, from, most)
    }

    fn length(&self, episode: &EpisodeId) -> Result<u64, StoreError> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.inner.length(episode)
    }

    fn holders(&self, signatures: &[Digest]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.inner.holders(signatures)
    }
}

/// A store that answers later: `before` polls pass before a commit happens and `after` before it is answered, so that
/// its future can be dropped on either side.
#[derive(Debug, Default)]
pub struct Delay<S> {
    /// The store that is asked.
    pub inner: S,
    /// Pending polls before the commit.
    pub before: u32,
    /// Pending polls after it.
    pub after: u32,
}

async fn pending(mut polls: u32) {
    poll_fn(|context| {
        if polls == 0 {
            return Poll::Ready(());
        }
        polls -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl<S: Store> keepspan::store::AsyncStore for Delay<S> {
    async fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        pending(self.before).await;
        let answer = self.inner.commit(batch);
        pending(self.after).await;
        answer
    }

    async fn get_many(&self, digests: &[Digest]) -> Result<Vec<Vec<u8>>, StoreError> {
        self.inner.get_many(digests)
    }

    async fn read(&self, episode: &EpisodeId, from: u64, most: u64) -> Result<Vec<Vec<u8>>, StoreError> {
        self.inner.read(episode, from, most)
    }

    async fn length(&self, episode: &EpisodeId) -> Result<u64, StoreError> {
        self.inner.length(episode)
    }

    async fn holders(&self, signatures: &[Digest]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.inner.holders(signatures)
    }
}

/// Four bytes a token, rounded up: for tests that need to know each count, and benchmarks whose other side counts so.
#[derive(Clone, Copy, Debug, Default)]
pub struct FourBytes;

impl TokenCounter for FourBytes {
    fn text(&self, text: &str) -> Result<TokenCount, CounterError> {
        Ok(TokenCount::estimate(u32::try_from(text.len().div_ceil(4)).unwrap_or(u32::MAX)))
    }
}

/// A shared in-memory store.
pub fn memory() -> Arc<MemoryStore> {
    Arc::default()
}
