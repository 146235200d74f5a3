//! A store that lives as long as the process: tests, dry runs.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::{Batch, Store, StoreError};
use crate::{Digest, EpisodeId};

/// A store in memory: the whole contract except that nothing outlives the process.
///
/// Clone an [`Arc`](std::sync::Arc) of it to share it.
#[derive(Default)]
pub struct MemoryStore {
    tables: Mutex<Tables>,
}

#[derive(Default)]
struct Tables {
    /// None under a digest that was sealed.
    blobs: HashMap<Digest, Option<Vec<u8>>>,
    logs: BTreeMap<EpisodeId, Vec<Vec<u8>>>,
    claims: HashMap<Digest, Vec<u8>>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Every episode that has records, ascending, with their number. O(episodes).
    ///
    /// # Errors
    /// None: as [`EmbeddedStore::episodes`](super::EmbeddedStore::episodes), so that either serves.
    pub fn episodes(&self) -> Result<Vec<(EpisodeId, u64)>, StoreError> {
        Ok(self.tables().logs.iter().map(|(episode, log)| (episode.clone(), count(log))).collect())
    }

    // Every method checks before it changes anything and nothing between its changes panics, so the tables of a
    // poisoned lock are whole.
    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tables {
    fn log(&self, episode: &EpisodeId) -> &[Vec<u8>] {
        self.logs.get(episode).map_or(&[], Vec::as_slice)
    }

    fn blob(&self, digest: &Digest) -> Result<Vec<u8>, StoreError> {
        let blob = self.blobs.get(digest).ok_or(StoreError::Missing { digest: *digest })?;
        blob.clone().ok_or(StoreError::Sealed { digest: *digest })
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tables = self.tables();
        f.debug_struct("MemoryStore")
            .field("blobs", &tables.blobs.len())
            .field("episodes", &tables.logs.len())
            .field("claims", &tables.claims.len())
            .finish()
    }
}

impl Store for MemoryStore {
    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        let mut tables = self.tables();
        let found = count(tables.log(batch.episode()));
        if found != batch.expected() {
            return Err(StoreError::Conflict { episode: batch.episode().clone(), expected: batch.expected(), found });
        }
        if let Some((claim, holder)) =
            batch.claims().iter().find_map(|claim| tables.claims.get_key_value(&claim.signature))
        {
            return Err(StoreError::Claimed { signature: *claim, holder: holder.clone() });
        }
        if let Some(claim) = batch.claimed_twice() {
            return Err(StoreError::Claimed { signature: claim.signature, holder: claim.holder.clone() });
        }
        for claim in batch.claims() {
            tables.claims.insert(claim.signature, claim.holder.clone());
        }
        for digest in batch.seals() {
            tables.blobs.insert(*digest, None);
        }
        for blob in batch.blobs() {
            tables.blobs.entry(*blob.digest()).or_insert_with(|| Some(blob.bytes().to_vec()));
        }
        if !batch.records().is_empty() {
            tables.logs.entry(batch.episode().clone()).or_default().extend_from_slice(batch.records());
        }
        Ok(())
    }

    fn get(&self, digest: &Digest) -> Result<Vec<u8>, StoreError> {
        self.tables().blob(digest)
    }

    fn get_many(&self, digests: &[Digest]) -> Result<Vec<Vec<u8>>, StoreError> {
        let tables = self.tables();
        digests.iter().map(|digest| tables.blob(digest)).collect()
    }

    fn read(&self, episode: &EpisodeId, from: u64, most: u64) -> Result<Vec<Vec<u8>>, StoreError> {
        let [from, most] = [from, most].map(|number| usize::try_from(number).unwrap_or(usize::MAX));
        Ok(self.tables().log(episode).iter().skip(from).take(most).cloned().collect())
    }

    fn length(&self, episode: &EpisodeId) -> Result<u64, StoreError> {
        Ok(count(self.tables().log(episode)))
    }

    fn holders(&self, signatures: &[Digest]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let tables = self.tables();
        Ok(signatures.iter().map(|signature| tables.claims.get(signature).cloned()).collect())
    }
}

fn count(log: &[Vec<u8>]) -> u64 {
    u64::try_from(log.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_contract() {
        super::super::conformance::check(MemoryStore::new).unwrap();
    }
}
