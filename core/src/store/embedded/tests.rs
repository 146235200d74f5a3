//! The embedded store on disks that fill up, die or were left open.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
};

use redb::{StorageBackend, backends::FileBackend};
use tempfile::TempDir;

use super::*;
use crate::store::Blob;
use crate::store::Claim;

fn batch(expected: u64, text: Vec<u8>) -> Batch {
    Batch::new(EpisodeId::new("e"), expected, vec![Blob::new(text)], vec![expected.to_string().into()])
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn refusal(path: &Path) -> StoreError {
    let error = EmbeddedStore::open(path).unwrap_err();
    assert!(error.to_string().starts_with(&path.display().to_string()), "{error}");
    error
}

#[test]
fn keeps_the_contract() {
    let (folder, next) = (folder(), AtomicU64::new(0));
    let open = || EmbeddedStore::open(&folder.path().join(next.fetch_add(1, SeqCst).to_string())).unwrap();
    crate::store::conformance::check(open).unwrap();
}

#[test]
fn opens_again_with_everything() {
    let folder = folder();
    let path = folder.path().join("store");
    let text = vec![7; 70_000];
    let digest = Digest::of(&text);
    let store = EmbeddedStore::open(&path).unwrap();
    let claim = Claim { signature: digest, holder: b"me".to_vec() };
    store.commit(&batch(0, text.clone()).claiming(vec![claim])).unwrap();
    drop(store);
    let store = EmbeddedStore::open(&path).unwrap();
    assert_eq!(store.path(), path);
    assert_eq!(store.get(&digest).unwrap(), text);
    assert_eq!(store.length(&EpisodeId::new("e")).unwrap(), 1);
    assert_eq!(store.holders(&[digest]).unwrap(), [Some(b"me".to_vec())]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
}

#[test]
fn a_second_open_is_in_use() {
    let folder = folder();
    let path = folder.path().join("store");
    let store = EmbeddedStore::open(&path).unwrap();
    assert!(matches!(refusal(&path), StoreError::InUse { .. }));
    drop(store);
    EmbeddedStore::open(&path).unwrap();
}

#[test]
fn many_creators_make_one_store() {
    let folder = folder();
    let path = folder.path().join("store");
    let opened: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| EmbeddedStore::open(&path))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(opened.iter().filter(|store| store.is_ok()).count(), 1);
    for error in opened.iter().filter_map(|store| store.as_ref().err()) {
        assert!(matches!(error, StoreError::InUse { .. }), "{error}");
    }
}

#[test]
fn other_files_are_no_store() {
    let folder = folder();
    let path = folder.path().join("file");
    for text in [vec![], b"abc".to_vec(), vec![b'x'; 100_000]] {
        fs::write(&path, &text).unwrap();
        assert!(matches!(refusal(&path), StoreError::NotAStore { .. }), "{} bytes", text.len());
        assert_eq!(fs::read(&path).unwrap(), text, "the file is as it was");
    }
}

#[test]
fn another_programs_tables_are_no_store() {
    let folder = folder();
    let path = folder.path().join("file");
    let database = Database::create(&path).unwrap();
    let write = database.begin_write().unwrap();
    write.open_table(TableDefinition::<u64, u64>::new("other")).unwrap();
    write.commit().unwrap();
    drop(database);
    assert!(matches!(refusal(&path), StoreError::NotAStore { .. }));
    let database = Database::create(&path).unwrap();
    let write = database.begin_write().unwrap();
    write.open_table(TableDefinition::<u64, u64>::new("keepspan")).unwrap();
    write.commit().unwrap();
    drop(database);
    assert!(matches!(refusal(&path), StoreError::NotAStore { .. }));
}

#[test]
fn another_format_is_named() {
    let folder = folder();
    let path = folder.path().join("store");
    drop(EmbeddedStore::open(&path).unwrap());
    let database = Database::create(&path).unwrap();
    let write = database.begin_write().unwrap();
    write.open_table(META).unwrap().insert("format", 7).unwrap();
    write.commit().unwrap();
    drop(database);
    assert!(matches!(refusal(&path), StoreError::Version { found: 7, supported: FORMAT, .. }));
}

#[test]
fn folders_that_will_not_do_are_named() {
    let folder = folder();
    for path in [folder.path().join("absent/store"), folder.path().to_path_buf(), PathBuf::from("/proc/keepspan")] {
        assert!(matches!(refusal(&path), StoreError::Io { .. }), "{}", path.display());
    }
}

#[cfg(unix)]
#[test]
fn read_only_folders_and_files_are_named() {
    use std::os::unix::fs::PermissionsExt;

    let folder = folder();
    let path = folder.path().join("store");
    drop(EmbeddedStore::open(&path).unwrap());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o500)).unwrap();
    // The superuser may write all the same.
    if File::create(folder.path().join("probe")).is_err() {
        assert!(matches!(refusal(&path), StoreError::Io { .. }));
        assert!(matches!(refusal(&folder.path().join("new")), StoreError::Io { .. }));
    }
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
}

/// A disk with room for `room` bytes that dies after `calls` writes and syncs.
#[derive(Debug)]
struct Disk {
    file: FileBackend,
    room: Arc<AtomicU64>,
    calls: Arc<AtomicU64>,
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }
    fn sync_data(&self) -> io::Result<()> {
        self.count()
    }
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.count()?;
        if offset + data.len() as u64 > self.room.load(SeqCst) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.file.write(offset, data)
    }
    fn close(&self) -> io::Result<()> {
        self.file.close()
    }
}

impl Disk {
    /// One call less; the last one fails, and so does every later one.
    fn count(&self) -> io::Result<()> {
        let left = self.calls.fetch_update(SeqCst, SeqCst, |left| Some(left.saturating_sub(1)));
        if left == Ok(0) { Err(io::Error::other("the disk died")) } else { Ok(()) }
    }
}

fn on_disk(path: &Path) -> (EmbeddedStore, Arc<AtomicU64>, Arc<AtomicU64>) {
    let (room, calls) = (Arc::new(AtomicU64::new(u64::MAX)), Arc::new(AtomicU64::new(u64::MAX)));
    let (path_in, room_in, calls_in) = (path.to_path_buf(), room.clone(), calls.clone());
    let storage = move || {
        let file = File::options().read(true).write(true).create(true).truncate(false).open(&path_in)?;
        let file = FileBackend::new(file).map_err(io::Error::other)?;
        Ok(Disk { file, room: room_in.clone(), calls: calls_in.clone() })
    };
    (EmbeddedStore::over(path, storage).unwrap(), room, calls)
}

#[test]
fn a_full_disk_is_named_and_the_step_can_run_again() {
    let folder = folder();
    let path = folder.path().join("store");
    let (store, room, _) = on_disk(&path);
    store.commit(&batch(0, vec![1; 100])).unwrap();
    room.store(fs::metadata(&path).unwrap().len(), SeqCst);
    let large = batch(1, vec![2; 8 << 20]);
    for _ in 0..2 {
        let error = store.commit(&large).unwrap_err();
        assert!(
            matches!(&error, StoreError::Io { path: named, source }
            if *named == path && source.kind() == io::ErrorKind::StorageFull),
            "{error}"
        );
    }
    room.store(u64::MAX, SeqCst);
    assert_eq!(store.length(&EpisodeId::new("e")).unwrap(), 1);
    assert!(matches!(store.get(large.blobs()[0].digest()), Err(StoreError::Missing { .. })));
    store.commit(&large).unwrap();
    assert_eq!(store.get(large.blobs()[0].digest()).unwrap().len(), 8 << 20);
}

#[test]
fn a_disk_that_dies_anywhere_leaves_all_or_nothing() {
    let (mut refused, mut unknown, mut done) = (0, 0, 0);
    for alive in 0..40 {
        let folder = folder();
        let (store, _, calls) = on_disk(&folder.path().join("store"));
        store.commit(&batch(0, vec![1; 100])).unwrap();
        let second = batch(1, vec![2; 70_000]);
        calls.store(alive, SeqCst);
        let result = store.commit(&second);
        calls.store(u64::MAX, SeqCst);
        let length = store.length(&EpisodeId::new("e")).unwrap();
        let blob = store.get(second.blobs()[0].digest());
        assert_eq!(length == 2, blob.is_ok(), "all or nothing");
        match result {
            Ok(()) => (done += 1, assert_eq!(length, 2)).1,
            Err(StoreError::Unacknowledged) => unknown += 1,
            Err(error) => (refused += 1, assert_eq!(length, 1, "{error}")).1,
        }
        if length == 1 {
            store.commit(&second).unwrap();
        }
    }
    assert!(done > 0 && unknown > 0, "{refused} refused, {unknown} unknown, {done} done");
}

/// A random key, 40 bytes: the name that a new file is given.
fn key() -> Vec<u8> {
    let file = tempfile::Builder::new().prefix("").rand_bytes(40).tempfile().unwrap();
    file.path().file_name().unwrap().as_encoded_bytes().to_vec()
}

/// A blob of `size` bytes with `key` at its start, at its end and every 1,000 bytes.
fn secret(key: &[u8], number: u64, size: usize) -> Blob {
    let mut bytes = number.to_le_bytes().repeat(size.div_ceil(8));
    bytes.truncate(size);
    for at in (0..size - key.len()).step_by(1_000).chain([size - key.len()]) {
        bytes[at..at + key.len()].copy_from_slice(key);
    }
    Blob::new(bytes)
}

fn found(path: &Path, key: &[u8]) -> usize {
    let file = fs::read(path).unwrap();
    file.windows(key.len()).filter(|window| window[0] == key[0] && *window == key).count()
}

#[test]
fn no_byte_of_what_was_sealed_is_in_the_file() {
    for (others, group) in [(1, 1), (1_000, 1), (1_000, 50)] {
        let folder = folder();
        let path = folder.path().join("store");
        let store = EmbeddedStore::open(&path).unwrap();
        let sizes = [100, 5_000, 300_000].into_iter().chain([100; 20]);
        let (keys, secrets): (Vec<_>, Vec<_>) = (0..)
            .zip(sizes)
            .map(|(number, size)| {
                let key = key();
                (key.clone(), secret(&key, number, size))
            })
            .unzip();
        let digests: Vec<Digest> = secrets.iter().map(|blob| *blob.digest()).collect();
        let others: Vec<Blob> = (0..others).map(|n: u64| Blob::new(n.to_le_bytes().repeat(40))).collect();
        let mut length = 0;
        let mut commit = |blobs: &[Blob], seals: &[Digest]| {
            let batch = Batch::new(EpisodeId::new("e"), length, blobs.to_vec(), vec![vec![1]]);
            store.commit(&batch.sealing(seals.to_vec())).unwrap();
            length += 1;
        };
        let mut rest = secrets.as_slice();
        for group in others.chunks(group) {
            let (now, later) = rest.split_at(rest.len().min(1));
            commit(&[group, now].concat(), &[]);
            rest = later;
        }
        commit(rest, &[]);
        assert!(keys.iter().all(|key| found(&path, key) > 0), "the keys are there to be found");
        // One commit for many, then one for each.
        let (many, each) = digests.split_at(10);
        let size = fs::metadata(&path).unwrap().len();
        for (seals, from) in [many].into_iter().chain(each.chunks(1)).zip([0].into_iter().chain(10..)) {
            commit(&[], seals);
            for key in &keys[from..from + seals.len()] {
                assert_eq!(found(&path, key), 0, "{} others in groups of {group}", others.len());
            }
        }
        assert!(fs::metadata(&path).unwrap().len() <= size, "the file does not grow");
        commit(&secrets, &[]);
        for blob in &others {
            assert_eq!(store.get(blob.digest()).unwrap(), blob.bytes());
        }
        drop(store);
        assert!(keys.iter().all(|key| found(&path, key) == 0));
        let store = EmbeddedStore::open(&path).unwrap();
        for digest in digests {
            assert!(matches!(store.get(&digest), Err(StoreError::Sealed { .. })));
        }
    }
}

/// What a commit replaced is free only after the next one, and where that lies depends on the commits before.
#[test]
fn no_byte_of_what_was_sealed_is_in_the_file_whatever_was_committed_before() {
    for history in 1..=40 {
        let (folder, key) = (folder(), key());
        let path = folder.path().join("store");
        let store = EmbeddedStore::open(&path).unwrap();
        let (mut length, mut number, mut seals) = (0, 0, Vec::new());
        for commit in 0..history % 13 + 1 {
            let mut blobs = Vec::new();
            for _ in 0..(history * 7 + commit * 5) % 30 + 1 {
                number += 1;
                let size = [60, 150, 700, 3_000, 4_200, 9_000, 66_000][(number * history + commit) % 7];
                blobs.push(if number % 6 == 0 {
                    secret(&key, number as u64, size)
                } else {
                    Blob::new(number.to_le_bytes().repeat(size / 8))
                });
                if number % 6 == 0 {
                    seals.extend(blobs.last().map(|blob| *blob.digest()));
                }
            }
            store.commit(&Batch::new(EpisodeId::new("e"), length, blobs, vec![vec![1]])).unwrap();
            length += 1;
        }
        store.commit(&Batch::new(EpisodeId::new("e"), length, vec![], vec![vec![2]]).sealing(seals)).unwrap();
        assert_eq!(found(&path, &key), 0, "history {history}");
    }
}

#[test]
fn a_disk_that_dies_anywhere_seals_and_scrubs_or_leaves_all() {
    let (mut lost, mut late, mut done) = (0, 0, 0);
    for alive in (0..20).chain((20..140).step_by(12)).chain([100_000]) {
        let (folder, key) = (folder(), key());
        let path = folder.path().join("store");
        let (store, _, calls) = on_disk(&path);
        let (small, large) = (secret(&key, 1, 100), secret(&key, 2, 70_000));
        let sealed = vec![*small.digest(), *large.digest()];
        store.commit(&Batch::new(EpisodeId::new("e"), 0, vec![small, large], vec![vec![1]])).unwrap();
        store.commit(&batch(1, vec![7; 70_000])).unwrap();
        calls.store(alive, SeqCst);
        let result = store.commit(&Batch::new(EpisodeId::new("e"), 2, vec![], vec![vec![3]]).sealing(sealed.clone()));
        calls.store(u64::MAX, SeqCst);
        let again = if alive % 2 == 0 {
            store
        } else {
            drop(store);
            EmbeddedStore::open(&path).unwrap()
        };
        let happened = again.length(&EpisodeId::new("e")).unwrap() == 3;
        for digest in &sealed {
            match again.get(digest) {
                Ok(_) => assert!(!happened),
                Err(StoreError::Sealed { .. }) => assert!(happened),
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(found(&path, &key) == 0, happened);
        match result {
            Ok(()) => (done += 1, assert!(happened)).1,
            Err(StoreError::Unacknowledged) if happened => late += 1,
            Err(error) => (lost += 1, assert!(!happened, "{error}")).1,
        }
    }
    assert!(lost > 0 && late > 0 && done > 0, "{lost} did not happen, {late} were scrubbed later, {done} at once");
}

#[test]
fn episodes_are_listed_with_their_records() {
    let (folder, memory) = (folder(), super::super::MemoryStore::new());
    let store = EmbeddedStore::open(&folder.path().join("store")).unwrap();
    assert_eq!(store.episodes().unwrap(), []);
    let names = ["", "\0", "a", "a\0", "ab", "b", "\u{10ffff}"];
    for (records, name) in (1..).zip(names) {
        let log = vec![b"{}".to_vec(); records];
        let batch = Batch::new(EpisodeId::new(name), 0, vec![], log);
        store.commit(&batch).unwrap();
        memory.commit(&batch).unwrap();
    }
    let blobs_only = Batch::new(EpisodeId::new("none"), 0, vec![Blob::new("text")], vec![]);
    store.commit(&blobs_only).unwrap();
    memory.commit(&blobs_only).unwrap();
    let due: Vec<_> = names.map(EpisodeId::new).into_iter().zip(1..).collect();
    assert_eq!(store.episodes().unwrap(), due);
    assert_eq!(memory.episodes().unwrap(), due);
}

#[test]
fn a_missing_file_is_named_and_not_created() {
    let folder = folder();
    let path = folder.path().join("store");
    for open in [EmbeddedStore::open_existing, EmbeddedStore::open_read_only] {
        let error = open(&path).unwrap_err();
        assert!(error.to_string().starts_with(&path.display().to_string()), "{error}");
        assert!(matches!(error, StoreError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound));
        assert!(!path.exists());
    }
    drop(EmbeddedStore::open(&path).unwrap());
    EmbeddedStore::open_existing(&path).unwrap().commit(&batch(0, vec![1])).unwrap();
}

#[test]
fn reading_only_never_writes_even_to_a_file_that_was_not_closed() {
    let folder = folder();
    let [closed, crashed, other] = ["closed", "crashed", "other"].map(|name| folder.path().join(name));
    let store = EmbeddedStore::open(&closed).unwrap();
    for length in 0..40 {
        store.commit(&batch(length, vec![7; 70_000 + usize::try_from(length).unwrap()])).unwrap();
    }
    // The file as a process that is killed here would leave it.
    fs::copy(&closed, &crashed).unwrap();
    drop(store);
    for path in [&closed, &crashed] {
        let before = fs::read(path).unwrap();
        let readers = [(); 2].map(|()| EmbeddedStore::open_read_only(path).unwrap());
        for store in &readers {
            assert_eq!(store.episodes().unwrap(), [(EpisodeId::new("e"), 40)]);
            assert_eq!(store.read(&EpisodeId::new("e"), 38, 5).unwrap(), [b"38", b"39"]);
            for length in 0..40 {
                let text = vec![7; 70_000 + length];
                assert_eq!(store.get(&Digest::of(&text)).unwrap(), text);
            }
            let refusal = store.commit(&batch(40, vec![1])).unwrap_err();
            assert!(matches!(&refusal, StoreError::ReadOnly { path: named } if named == path), "{refusal}");
        }
        assert!(matches!(refusal(path), StoreError::InUse { .. }), "readers keep writers out");
        drop(readers);
        assert!(before == fs::read(path).unwrap(), "{} was written to", path.display());
        let writer = EmbeddedStore::open(path).unwrap();
        assert!(matches!(EmbeddedStore::open_read_only(path), Err(StoreError::InUse { .. })));
        drop(writer);
    }
    for text in [vec![], vec![b'x'; 100_000]] {
        fs::write(&other, &text).unwrap();
        assert!(matches!(EmbeddedStore::open_read_only(&other), Err(StoreError::NotAStore { .. })));
        assert_eq!(fs::read(&other).unwrap(), text);
    }
}
