//! A store for a replay that is too large for memory: texts in a file that nobody else sees, all else in memory.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, Seek as _, SeekFrom, Write as _},
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

use keepspan::{
    Digest, EpisodeId,
    store::{Batch, MemoryStore, Store, StoreError},
};

use crate::report::story::number;

/// Nothing of it outlives the process, so nothing is synced. It is one replay's own, and seals nothing.
pub struct Scratch {
    rest: MemoryStore,
    file: File,
    texts: Mutex<Texts>,
}

#[derive(Default)]
struct Texts {
    end: u64,
    places: HashMap<Digest, Place>,
}

/// Where a text begins, and its length.
type Place = (u64, usize);

impl Scratch {
    /// Opens a file without a name in the system's folder for temporary ones.
    ///
    /// # Errors
    /// When there can be none.
    pub fn new() -> io::Result<Self> {
        Ok(Self { rest: MemoryStore::new(), file: tempfile::tempfile()?, texts: Mutex::default() })
    }

    fn texts(&self) -> MutexGuard<'_, Texts> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, batch: &Batch) -> io::Result<()> {
        let (mut texts, mut file) = (self.texts(), &self.file);
        let length = batch.blobs().iter().map(|blob| blob.bytes().len()).sum();
        let (mut written, mut places) = (Vec::with_capacity(length), Vec::with_capacity(batch.blobs().len()));
        for blob in batch.blobs().iter().filter(|blob| !texts.places.contains_key(blob.digest())) {
            let at = texts.end.saturating_add(number(written.len()));
            places.push((*blob.digest(), (at, blob.bytes().len())));
            written.extend_from_slice(blob.bytes());
        }
        file.seek(SeekFrom::Start(texts.end))?;
        file.write_all(&written)?;
        texts.end = texts.end.saturating_add(number(written.len()));
        texts.places.extend(places);
        Ok(())
    }

    fn text(&self, (at, length): Place) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        // Two threads bring texts back: where the system can, neither waits for the other.
        #[cfg(unix)]
        std::os::unix::fs::FileExt::read_exact_at(&self.file, &mut bytes, at)?;
        #[cfg(not(unix))]
        {
            let (_alone, mut file) = (self.texts(), &self.file);
            file.seek(SeekFrom::Start(at))?;
            io::Read::read_exact(&mut file, &mut bytes)?;
        }
        Ok(bytes)
    }

    /// The texts that follow each other from the first place on, as what was committed together does: in one read.
    fn run(&self, places: &[Place], texts: &mut Vec<Vec<u8>>) -> io::Result<()> {
        let [(at, length), others @ ..] = places else { return Ok(()) };
        let all = others.iter().fold(*length, |all, (_, length)| all.saturating_add(*length));
        let bytes = self.text((*at, all))?;
        if others.is_empty() {
            texts.push(bytes);
            return Ok(());
        }
        let mut rest = bytes.as_slice();
        for (_, length) in places {
            let (text, after) = rest.split_at_checked(*length).unwrap_or((rest, &[]));
            texts.push(text.to_vec());
            rest = after;
        }
        Ok(())
    }
}

fn failed(source: io::Error) -> StoreError {
    StoreError::Io { path: PathBuf::from("the replay's scratch file"), source }
}

impl Store for Scratch {
    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        let rest = Batch::new(batch.episode().clone(), batch.expected(), Vec::new(), batch.records().to_vec());
        self.rest.commit(&rest.claiming(batch.claims().to_vec()))?;
        if batch.blobs().is_empty() { Ok(()) } else { self.put(batch).map_err(failed) }
    }

    fn get(&self, digest: &Digest) -> Result<Vec<u8>, StoreError> {
        self.get_many(&[*digest]).map(|mut texts| texts.pop().unwrap_or_default())
    }

    fn get_many(&self, digests: &[Digest]) -> Result<Vec<Vec<u8>>, StoreError> {
        let places = {
            let texts = self.texts();
            let place = |digest| texts.places.get(digest).copied().ok_or(StoreError::Missing { digest: *digest });
            digests.iter().map(place).collect::<Result<Vec<_>, _>>()?
        };
        let mut texts = Vec::with_capacity(places.len());
        for run in places.chunk_by(|(at, length), (next, _)| at.saturating_add(number(*length)) == *next) {
            self.run(run, &mut texts).map_err(failed)?;
        }
        Ok(texts)
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
        let apart = [b"three" as &[u8], b"one", b"two, longer", b"three"];
        assert_eq!(store.get_many(&apart.map(Digest::of))?, apart);
        assert!(matches!(store.get(&Digest::of(b"four")), Err(StoreError::Missing { .. })));
        assert!(matches!(
            store.commit(&Batch::new(episode.clone(), 1, Vec::new(), vec![vec![3]])),
            Err(StoreError::Conflict { .. })
        ));
        assert_eq!(store.read(&episode, 0, 9)?, [[1], [2]]);
        Ok(())
    }
}
