//! A store for a replay that is too large for memory: texts in a file that nobody else sees, all else in memory.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

use keepspan::{
    Digest, EpisodeId,
    store::{Batch, MemoryStore, Store, StoreError},
};

/// Nothing of it outlives the process, so nothing is synced. It is one replay's own, and seals nothing.
pub struct Scratch {
    rest: MemoryStore,
    texts: Mutex<Texts>,
}

struct Texts {
    file: File,
    end: u64,
    /// Where each text begins, and its length.
    places: HashMap<Digest, (u64, usize)>,
}

impl Scratch {
    /// Opens a file without a name in the system's folder for temporary ones.
    ///
    /// # Errors
    /// When there can be none.
    pub fn new() -> io::Result<Self> {
        let texts = Texts { file: tempfile::tempfile()?, end: 0, places: HashMap::new() };
        Ok(Self { rest: MemoryStore::new(), texts: Mutex::new(texts) })
    }

    fn texts(&self) -> MutexGuard<'_, Texts> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Texts {
    fn put(&mut self, batch: &Batch) -> io::Result<()> {
        let (mut written, mut places) = (Vec::new(), Vec::new());
        for blob in batch.blobs().iter().filter(|blob| !self.places.contains_key(blob.digest())) {
            let at = self.end.saturating_add(crate::report::story::number(written.len()));
            places.push((*blob.digest(), (at, blob.bytes().len())));
            written.extend_from_slice(blob.bytes());
        }
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.write_all(&written)?;
        self.end = self.end.saturating_add(crate::report::story::number(written.len()));
        self.places.extend(places);
        Ok(())
    }

    fn get(&mut self, (at, length): (u64, usize)) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.file.seek(SeekFrom::Start(at))?;
        self.file.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

fn failed(source: io::Error) -> StoreError {
    StoreError::Io { path: PathBuf::from("the replay's scratch file"), source }
}

impl Store for Scratch {
    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        let rest = Batch::new(batch.episode().clone(), batch.expected(), Vec::new(), batch.records().to_vec());
        self.rest.commit(&rest.claiming(batch.claims().to_vec()))?;
        if batch.blobs().is_empty() { Ok(()) } else { self.texts().put(batch).map_err(failed) }
    }

    fn get(&self, digest: &Digest) -> Result<Vec<u8>, StoreError> {
        let mut texts = self.texts();
        let place = *texts.places.get(digest).ok_or(StoreError::Missing { digest: *digest })?;
        texts.get(place).map_err(failed)
    }

    fn read(&self, episode: &EpisodeId, from: u64, most: u64) -> Result<Vec<Vec<u8>>, StoreError> {
        self.rest.read(episode, from, most)
    }

    fn length(&self, episode: &EpisodeId) -> Result<u64, StoreError> {
        self.rest.length(episode)
    }

    fn holders(&self, signatures: &[Digest]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.rest.holders(signatures)
    }
}

#[cfg(test)]
mod tests {
    use keepspan::store::Blob;

    use super::*;

    #[test]
    fn texts_come_back() -> Result<(), Box<dyn std::error::Error>> {
        let store = Scratch::new()?;
        let texts = ["one", "two, longer", "one"].map(Blob::new);
        let digests = texts.each_ref().map(|blob| *blob.digest());
        let episode = EpisodeId::new("e");
        store.commit(&Batch::new(episode.clone(), 0, texts.to_vec(), vec![vec![1]]))?;
        store.commit(&Batch::new(episode.clone(), 1, vec![Blob::new("three")], vec![vec![2]]))?;
        assert_eq!(store.get_many(&digests)?, [&b"one"[..], b"two, longer", b"one"]);
        assert_eq!(store.get(&Digest::of(b"three"))?, b"three");
        assert!(matches!(store.get(&Digest::of(b"four")), Err(StoreError::Missing { .. })));
        assert!(matches!(
            store.commit(&Batch::new(episode.clone(), 1, Vec::new(), vec![vec![3]])),
            Err(StoreError::Conflict { .. })
        ));
        assert_eq!(store.read(&episode, 0, 9)?, [[1], [2]]);
        Ok(())
    }
}
