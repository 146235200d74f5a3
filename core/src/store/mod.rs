//! Where text goes before it may leave a window: append-only and addressed by digest. Nothing is updated or deleted;
//! only a redaction seals a blob, whose bytes are then gone (rule R23).

mod batch;
pub mod conformance;
#[cfg(feature = "redb")]
mod embedded;
mod error;
mod memory;

#[cfg(feature = "redb")]
mod overlay;
#[cfg(feature = "redb")]
use std::path::Path;
use std::{future::Future, sync::Arc};

#[cfg(feature = "redb")]
pub use self::embedded::EmbeddedStore;
pub use self::{
    batch::{Batch, Blob, Claim},
    error::StoreError,
    memory::MemoryStore,
};
use crate::{Digest, EpisodeId};

/// Opens the embedded default: one file, created when missing, durable on every commit.
///
/// # Errors
/// [`StoreError`] names the path and says why: it is open already, it is no such store, it has another version,
/// the folder cannot be written.
#[cfg(feature = "redb")]
pub fn open(path: impl AsRef<Path>) -> Result<EmbeddedStore, StoreError> {
    EmbeddedStore::open(path.as_ref())
}

/// A store that answers at once: a file, memory. Every such store is an [`AsyncStore`] too.
///
/// The contract, which [`conformance`] checks:
/// - `commit` is atomic, durable on return, puts each blob at most once per digest, and is refused with
///   [`StoreError::Conflict`] unless the episode's log has exactly the expected length, and otherwise with
///   [`StoreError::Claimed`] where a signature that the batch claims is held, by whatever episode and process.
/// - `get` returns the bytes that were put, whole; keepspan hashes or compares them on every read, so a store need not.
/// - a seal ([`Batch::sealing`]) leaves a stub where the bytes were, for good; nothing else updates, nothing deletes.
pub trait Store: Send + Sync {
    /// Writes blobs, seals, claims and records, all or nothing, durable when it returns.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when another writer was first, [`StoreError::Claimed`] when a claim is held; on any error nothing of the batch is visible, except
    /// for [`StoreError::Unacknowledged`], which says that this is not known.
    fn commit(&self, batch: &Batch) -> Result<(), StoreError>;

    /// The bytes under `digest`, unverified; [`fetch`] verifies.
    ///
    /// # Errors
    /// [`StoreError::Missing`] when the store has none; [`StoreError::Sealed`] when it must not have them.
    fn get(&self, digest: &Digest) -> Result<Vec<u8>, StoreError>;

    /// The bytes under each of `digests`, in their order; one read of the store where the backend can.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    fn get_many(&self, digests: &[Digest]) -> Result<Vec<Vec<u8>>, StoreError> {
        digests.iter().map(|digest| self.get(digest)).collect()
    }

    /// At most `most` records of an episode from number `from` on, oldest first; fewer only where the log ends.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn read(&self, episode: &EpisodeId, from: u64, most: u64) -> Result<Vec<Vec<u8>>, StoreError>;

    /// The number of records an episode has; 0 when it never began.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn length(&self, episode: &EpisodeId) -> Result<u64, StoreError>;

    /// Who holds each of `signatures`, in their order; none where it was never [claimed](Batch::claiming). One read of the
    /// store, and never an older state than that of the last commit that returned.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn holders(&self, signatures: &[Digest]) -> Result<Vec<Option<Vec<u8>>>, StoreError>;
}

/// The same contract for a store that answers later: a server. See [`Store`] for each method.
#[expect(missing_docs, reason = "each method is documented on `Store`")]
pub trait AsyncStore: Send + Sync {
    fn commit(&self, batch: &Batch) -> impl Future<Output = Result<(), StoreError>> + Send;
    fn get_many(&self, digests: &[Digest]) -> impl Future<Output = Result<Vec<Vec<u8>>, StoreError>> + Send;
    fn read(
        &self,
        episode: &EpisodeId,
        from: u64,
        most: u64,
    ) -> impl Future<Output = Result<Vec<Vec<u8>>, StoreError>> + Send;
    fn length(&self, episode: &EpisodeId) -> impl Future<Output = Result<u64, StoreError>> + Send;
    fn holders(&self, signatures: &[Digest]) -> impl Future<Output = Result<Vec<Option<Vec<u8>>>, StoreError>> + Send;
}

impl<S: Store> AsyncStore for S {
    async fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        Store::commit(self, batch)
    }

    async fn get_many(&self, digests: &[Digest]) -> Result<Vec<Vec<u8>>, StoreError> {
        Store::get_many(self, digests)
    }

    async fn read(&self, episode: &EpisodeId, from: u64, most: u64) -> Result<Vec<Vec<u8>>, StoreError> {
        Store::read(self, episode, from, most)
    }

    async fn length(&self, episode: &EpisodeId) -> Result<u64, StoreError> {
        Store::length(self, episode)
    }

    async fn holders(&self, signatures: &[Digest]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        Store::holders(self, signatures)
    }
}

impl<S: Store + ?Sized> Store for Arc<S> {
    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        (**self).commit(batch)
    }

    fn get(&self, digest: &Digest) -> Result<Vec<u8>, StoreError> {
        (**self).get(digest)
    }

    fn get_many(&self, digests: &[Digest]) -> Result<Vec<Vec<u8>>, StoreError> {
        (**self).get_many(digests)
    }

    fn read(&self, episode: &EpisodeId, from: u64, most: u64) -> Result<Vec<Vec<u8>>, StoreError> {
        (**self).read(episode, from, most)
    }

    fn length(&self, episode: &EpisodeId) -> Result<u64, StoreError> {
        (**self).length(episode)
    }

    fn holders(&self, signatures: &[Digest]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        (**self).holders(signatures)
    }
}

/// Reads blobs and verifies each against its digest: the only way keepspan reads a blob (rule R2).
///
/// # Errors
/// [`StoreError::Missing`], [`StoreError::Sealed`] or [`StoreError::Corrupt`], with the digest.
pub async fn fetch<S: AsyncStore>(store: &S, digests: &[Digest]) -> Result<Vec<Vec<u8>>, StoreError> {
    let blobs = store.get_many(digests).await?;
    for (at, digest) in digests.iter().enumerate() {
        match blobs.get(at) {
            Some(bytes) if Digest::of(bytes) == *digest => {}
            Some(_) => return Err(StoreError::Corrupt { digest: *digest }),
            None => return Err(StoreError::Missing { digest: *digest }),
        }
    }
    Ok(blobs)
}
