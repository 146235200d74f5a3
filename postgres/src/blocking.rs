//! The store for code that waits.

use keepspan::{
    Digest, EpisodeId,
    store::{AsyncStore, Batch, Store, StoreError},
};
use tokio::runtime::{Builder, Runtime};

use crate::{Error, Options, PostgresStore, Verified, migrate};

/// A [`PostgresStore`] that waits for each answer, on a runtime of its own: for a program without one, and for what takes a
/// [`Store`], as [`audit::verify`](keepspan::audit::verify). Not to be used, nor dropped, within an async runtime.
#[derive(Debug)]
pub struct Blocking {
    store: PostgresStore,
    runtime: Runtime,
}

impl Blocking {
    /// As [`PostgresStore::connect`].
    ///
    /// # Errors
    /// [`Error`] says what is wrong.
    pub fn connect(options: Options) -> Result<Self, Error> {
        let runtime = runtime()?;
        Ok(Self { store: runtime.block_on(PostgresStore::connect(options))?, runtime })
    }

    /// As [`migrate`](migrate()).
    ///
    /// # Errors
    /// [`Error`] says what is wrong.
    pub fn migrate(options: &Options) -> Result<i32, Error> {
        runtime()?.block_on(migrate(options))
    }

    /// As [`PostgresStore::episodes`].
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn episodes(&self) -> Result<Vec<(EpisodeId, u64)>, StoreError> {
        self.runtime.block_on(self.store.episodes())
    }

    /// As [`PostgresStore::verify`].
    ///
    /// # Errors
    /// When either store cannot be read.
    pub fn verify(&self) -> Result<Verified, StoreError> {
        self.runtime.block_on(self.store.verify())
    }

    /// As [`PostgresStore::scrub`].
    ///
    /// # Errors
    /// When either store fails.
    pub fn scrub(&self) -> Result<u64, StoreError> {
        self.runtime.block_on(self.store.scrub())
    }

    /// The store itself.
    pub fn inner(&self) -> &PostgresStore {
        &self.store
    }
}

fn runtime() -> Result<Runtime, Error> {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().map_err(Error::Runtime)
}

impl Store for Blocking {
    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        self.runtime.block_on(self.store.commit(batch))
    }

    fn get(&self, digest: &Digest) -> Result<Vec<u8>, StoreError> {
        let found = self.runtime.block_on(self.store.get_many(&[*digest]))?;
        found.into_iter().next().ok_or(StoreError::Missing { digest: *digest })
    }

    fn get_many(&self, digests: &[Digest]) -> Result<Vec<Vec<u8>>, StoreError> {
        self.runtime.block_on(self.store.get_many(digests))
    }

    fn read(&self, episode: &EpisodeId, from: u64, most: u64) -> Result<Vec<Vec<u8>>, StoreError> {
        self.runtime.block_on(self.store.read(episode, from, most))
    }

    fn length(&self, episode: &EpisodeId) -> Result<u64, StoreError> {
        self.runtime.block_on(self.store.length(episode))
    }

    fn holders(&self, signatures: &[Digest]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.runtime.block_on(self.store.holders(signatures))
    }
}
