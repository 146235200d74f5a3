//! What several end-to-end tests use: a state struct with every kind, and a store that fails on demand.

mod same;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use keepspan::{
    ContextState, CounterError, Digest, EpisodeId, Spans, TokenCount, TokenCounter,
    store::{Batch, Claim, MemoryStore, Store, StoreError},
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
    /// One bit of each blob read is flipped.
    BitFlip,
    /// Half of each blob read is missing.
    ShortRead,
}

impl Faulty {
    /// A store whose `nth` call from now goes wrong, once.
    pub fn arm(&self, nth: u64, fault: Fault) {
        self.damage.store(fault as u64, Ordering::SeqCst);
        self.countdown.store(nth, Ordering::SeqCst);
    }

    fn due(&self) -> Option<Fault> {
        let hit = self.countdown.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)) == Ok(1);
        let fault = [Fault::Fails, Fault::Unacknowledged, Fault::BitFlip, Fault::ShortRead];
        let at = usize::try_from(self.damage.load(Ordering::SeqCst)).ok();
        at.filter(|_| hit).and_then(|at| fault.get(at).copied())
    }
}

fn failure() -> StoreError {
    StoreError::backend("told to fail")
}

impl Store for Faulty {
    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        match self.due() {
            Some(Fault::Fails) => Err(failure()),
            Some(Fault::Unacknowledged) => self.inner.commit(batch).and(Err(StoreError::Unacknowledged)),
            _ => self.inner.commit(batch),
        }
    }

    fn get(&self, digest: &Digest) -> Result<Vec<u8>, StoreError> {
        let fault = self.due();
        if fault == Some(Fault::Fails) {
            return Err(failure());
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

    fn claim(&self, signature: &Digest, holder: &[u8]) -> Result<Claim, StoreError> {
        self.inner.claim(signature, holder)
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
