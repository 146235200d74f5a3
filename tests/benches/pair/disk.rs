//! Externalizing to a file: keepspan on its embedded store, and the same blobs and records in two tables of the same
//! engine without hashing, without reading back and without checking the log's length.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use keepspan::{
    Digest, Episode, EpisodeId, NewSpan, Window,
    store::{EmbeddedStore, MemoryStore, Store},
};
use keepspan_tests::{Agent, FourBytes};
use redb::{Database, Durability, TableDefinition};
use tempfile::TempDir;

use super::Inputs;

const BLOBS: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new("blobs");
const LOG: TableDefinition<'_, (&str, u64), &[u8]> = TableDefinition::new("log");

/// One commit: its blobs, each with its digest, and its record.
pub struct Group {
    blobs: Vec<(Digest, String)>,
    record: Vec<u8>,
}

/// What is written, grouped into commits; records and digests are made beforehand by a window over memory.
pub fn groups(inputs: &Inputs, size: usize) -> Vec<Group> {
    let store = Arc::new(MemoryStore::new());
    let mut window = Window::<Agent, _>::open_with(store.clone(), episode(), FourBytes).unwrap();
    let group = |texts: &[String]| {
        push(&mut window, texts.iter().map(String::as_str));
        drop(window.lanes().externalize().wait().unwrap());
        let blobs = texts.iter().map(|text| (Digest::of(text.as_bytes()), text.clone())).collect();
        let record = store.read(&EpisodeId::new("e"), window.records() - 1, 1).unwrap().remove(0);
        Group { blobs, record }
    };
    inputs.texts.chunks(size).map(group).collect()
}

fn episode() -> Episode {
    Episode::new("e", "p").budget(u64::MAX)
}

fn push<'a, St>(window: &mut Window<Agent, St>, texts: impl Iterator<Item = &'a str>) {
    let lanes = window.lanes();
    for text in texts {
        lanes.work.push(NewSpan::tool("read", text)).unwrap();
    }
}

/// A file in a folder of its own, which goes with it.
pub trait Disk {
    fn open() -> Self;
    /// Writes a group in one durable commit; how long that took, without what comes before.
    fn write(&mut self, group: &Group) -> Duration;
    fn path(&self) -> PathBuf;

    fn file_size(&self) -> u64 {
        self.path().metadata().unwrap().len()
    }
}

pub struct Typed {
    folder: TempDir,
    window: Window<Agent, EmbeddedStore>,
}

impl Disk for Typed {
    fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = keepspan::store::open(folder.path().join("spans")).unwrap();
        Self { window: Window::open_with(store, episode(), FourBytes).unwrap(), folder }
    }

    fn write(&mut self, group: &Group) -> Duration {
        push(&mut self.window, group.blobs.iter().map(|(_, text)| text.as_str()));
        let began = Instant::now();
        drop(self.window.lanes().externalize().wait().unwrap());
        began.elapsed()
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("spans")
    }
}

pub struct Raw {
    folder: TempDir,
    database: Database,
    length: u64,
}

impl Disk for Raw {
    fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::builder().set_cache_size(64 << 20).create(folder.path().join("spans")).unwrap();
        Self { folder, database, length: 1 }
    }

    fn write(&mut self, group: &Group) -> Duration {
        let began = Instant::now();
        let mut write = self.database.begin_write().unwrap();
        write.set_durability(Durability::Immediate).unwrap();
        {
            let (mut blobs, mut log) = (write.open_table(BLOBS).unwrap(), write.open_table(LOG).unwrap());
            for (digest, text) in &group.blobs {
                blobs.insert(digest.as_bytes(), text.as_bytes()).unwrap();
            }
            log.insert(("e", self.length), group.record.as_slice()).unwrap();
            self.length += 1;
        }
        write.commit().unwrap();
        began.elapsed()
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("spans")
    }
}
