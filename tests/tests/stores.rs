//! Every store runs the same suite, and a window on the embedded file keeps what it says.

use std::{
    fs::File,
    io,
    path::Path,
    pin::pin,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Waker},
};

use keepspan::{
    Digest, Episode, EpisodeId, OpenError, Window,
    store::{self, Batch, Blob, EmbeddedStore, MemoryStore, Store, StoreError, conformance},
};
use keepspan_tests::{Agent, Counting, Delay, Fault, Faulty};
use redb::{Database, StorageBackend, TableDefinition, backends::FileBackend};

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[test]
fn the_memory_store_conforms() -> Outcome {
    Ok(conformance::check(MemoryStore::new)?)
}

#[test]
fn a_shared_store_conforms() -> Outcome {
    Ok(conformance::check(|| Arc::new(MemoryStore::new()))?)
}

#[test]
fn the_test_suites_own_store_conforms_while_it_is_told_nothing() -> Outcome {
    Ok(conformance::check(Faulty::default)?)
}

#[test]
fn a_counting_store_conforms_and_counts() -> Outcome {
    conformance::check(|| Counting::new(MemoryStore::new()))?;
    let store = Counting::new(MemoryStore::new());
    let (episode, blob) = (EpisodeId::new("e"), Blob::new("text"));
    store.commit(&Batch::new(episode.clone(), 0, vec![blob.clone()], vec![vec![1]]))?;
    store.commit(&Batch::new(episode.clone(), 0, vec![], vec![])).expect_err("the log has a record");
    store.holders(&[*blob.digest()])?;
    store.get(blob.digest())?;
    Store::get_many(&store, &[*blob.digest(); 3])?;
    store.length(&episode)?;
    store.read(&episode, 0, 1)?;
    assert_eq!([store.commits(), store.gets(), store.reads()], [2, 4, 3]);
    assert_eq!([store.commits(), store.gets(), store.reads()], [0; 3], "counted anew");
    Ok(())
}

#[test]
fn a_full_store_says_so_once_and_writes_nothing() -> Outcome {
    let store = Faulty::default();
    let batch = Batch::new(EpisodeId::new("e"), 0, vec![Blob::new("text")], vec![vec![1]]);
    store.arm(1, Fault::OutOfSpace);
    let refused = store.commit(&batch);
    assert!(
        matches!(refused, Err(StoreError::Io { ref source, .. }) if source.kind() == io::ErrorKind::StorageFull),
        "{refused:?}"
    );
    assert!(matches!(store.get(&Digest::of(b"text")), Err(StoreError::Missing { .. })));
    Ok(store.commit(&batch)?)
}

#[test]
fn a_delayed_store_conforms_and_is_dropped_on_either_side_of_a_commit() -> Outcome {
    let open = || Delay { inner: MemoryStore::new(), before: 2, after: 1 };
    futures_lite::future::block_on(conformance::check_async(open))?;
    for (polls, happened) in [(1, 0), (2, 0), (3, 1)] {
        let store = open();
        {
            let batch = Batch::new(EpisodeId::new("e"), 0, vec![], vec![vec![1]]);
            let mut commit = pin!(store::AsyncStore::commit(&store, &batch));
            for _ in 0..polls {
                assert!(commit.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            }
        }
        assert_eq!(store.inner.length(&EpisodeId::new("e"))?, happened, "dropped after {polls} polls");
    }
    Ok(())
}

/// A file that counts its syncs.
#[derive(Debug)]
struct Synced(FileBackend, Arc<AtomicUsize>);

impl Synced {
    fn open(path: &Path, syncs: &Arc<AtomicUsize>) -> io::Result<Self> {
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
        Ok(Self(FileBackend::new(file).map_err(io::Error::other)?, syncs.clone()))
    }
}

impl StorageBackend for Synced {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.0.close()
    }
}

#[test]
fn a_commit_syncs_as_often_as_the_engine_must() -> Outcome {
    let folder = tempfile::tempdir()?;
    let syncs = Arc::new(AtomicUsize::new(0));

    let bare = Database::builder().create_with_backend(Synced::open(&folder.path().join("bare"), &syncs)?)?;
    let mut minimum = Vec::new();
    for number in 0..4 {
        syncs.store(0, Ordering::SeqCst);
        let write = bare.begin_write()?;
        write.open_table(TableDefinition::<u64, u64>::new("one"))?.insert(number, number)?;
        write.commit()?;
        minimum.push(syncs.load(Ordering::SeqCst));
    }
    let minimum = minimum.into_iter().min().ok_or("no commit")?;

    let (path, counted) = (folder.path().join("store"), syncs.clone());
    let store = EmbeddedStore::over(&path.clone(), move || Synced::open(&path, &counted))?;
    let episode = EpisodeId::new("e");
    // Makes room first: a file that grows is synced once more for its new length.
    let room = (0..200_u8).map(|n| Blob::new(vec![n; 5_000])).collect();
    store.commit(&Batch::new(episode.clone(), 0, room, vec![]))?;
    let blobs = || (0..20_u8).map(|n| Blob::new([n; 3_000].to_vec())).collect();
    for (length, blobs) in [(0, Vec::new()), (50, blobs()), (100, Vec::new()), (150, Vec::new())] {
        syncs.store(0, Ordering::SeqCst);
        store.commit(&Batch::new(episode.clone(), length, blobs, vec![vec![7; 100]; 50]))?;
        assert_eq!(syncs.load(Ordering::SeqCst), minimum, "50 records after {length}");
    }
    assert_eq!(minimum, 1, "one durable write is one sync");
    Ok(())
}

#[test]
fn the_embedded_store_conforms_as_both_traits() -> Outcome {
    let folder = tempfile::tempdir()?;
    let number = AtomicUsize::new(0);
    let open = || {
        let name = format!("{}.db", number.fetch_add(1, Ordering::Relaxed));
        store::open(folder.path().join(name)).expect("a new file opens")
    };
    conformance::check(open)?;
    Ok(futures_lite::future::block_on(conformance::check_async(open))?)
}

#[test]
fn what_left_a_window_is_in_the_file_after_the_process_closed_it() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("episode.db");
    let text = "large \u{1F680} ".repeat(600_000);
    let mut window = Window::<Agent, _>::open(store::open(&path)?, Episode::new("e", "p").budget(10_000_000))?;
    let lanes = window.lanes();
    let id = lanes.schema.push(text.as_str())?;
    let tombstones = lanes.externalize().wait()?.schema.evict(id).wait()?;
    assert_eq!(window.recall(id).wait()?.content().as_text(), Some(text.as_str()));
    drop(window);

    let store = store::open(&path)?;
    assert_eq!(store.get(&tombstones[0].sha256())?, text.as_bytes());
    assert_eq!(store.length(&EpisodeId::new("e"))?, 3, "opened, externalized, evicted");
    let again = Window::<Agent, _>::open(store, Episode::new("e", "p"));
    assert!(matches!(again, Err(OpenError::Exists { records: 3, .. })));
    Ok(())
}

/// Another process holds the file: this test, run again with the path in its environment.
#[test]
fn a_second_process_is_told_which_file_is_in_use() -> Outcome {
    if let Some(path) = std::env::var_os("KEEPSPAN_TEST_HELD") {
        let refused = store::open(&path);
        assert!(matches!(refused, Err(StoreError::InUse { path: named }) if named.as_os_str() == path));
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("held.db");
    let _held = store::open(&path)?;
    let other = Command::new(std::env::current_exe()?)
        .args(["--exact", "a_second_process_is_told_which_file_is_in_use"])
        .env("KEEPSPAN_TEST_HELD", &path)
        .output()?;
    assert!(other.status.success(), "{}", String::from_utf8_lossy(&other.stdout));
    Ok(())
}

#[test]
fn a_million_spans_are_pushed_externalized_and_evicted() -> Outcome {
    let mut window = Window::<Agent, _>::open(MemoryStore::new(), Episode::new("e", "p").budget(u64::MAX))?;
    let lanes = window.lanes();
    let ids = (0..1_000_000).map(|n: u32| lanes.work.push(n.to_string())).collect::<Result<Vec<_>, _>>()?;
    let lanes = lanes.externalize().wait()?;
    lanes.work.evict(ids[500_000]).wait()?;
    lanes.work.evict(ids).wait().expect_err("one of them is evicted already");
    let rest = lanes.work.resident();
    assert_eq!(rest.len(), 999_999);
    lanes.work.evict(rest).wait()?;
    drop(lanes);
    assert_eq!(window.render().len(), 1, "one pointer for all");
    assert_eq!(
        window.recall(keepspan::SpanId::parse("s777777").ok_or("id")?).wait()?.content().as_text(),
        Some("777776")
    );
    Ok(())
}
