//! The embedded default: one file, every commit durable on return.
//!
//! Tables: `heads` (digest -> where the blob's pieces are, and its tail; or that it is sealed), `pieces` (number -> bytes), `log` (episode
//! and number -> record), `claims` (signature -> holder), `keepspan` (the format version, whether a scrub is due).
//!
//! The engine rounds a value that does not fit into a page up to a power of two of pages, so 64 KB and a few bytes
//! would take 128 KB. A blob is therefore cut into pieces that fill their pages exactly, and what is left, less than a
//! page, lies beside the digest. Pieces are numbered in the order they come, so a commit writes them next to each other
//! and only the short heads are spread by digest.

use std::{
    fmt,
    fs::{self, File},
    io,
    ops::{Bound, Range, RangeInclusive},
    path::{Path, PathBuf},
    sync::{PoisonError, RwLock},
};

use redb::{Builder, Database, DatabaseError, ReadOnlyTable, ReadableDatabase, ReadableTable, Table, TableDefinition};

use super::{Batch, Blob, Claim, Store, StoreError, overlay::Overlay};
use crate::{Digest, EpisodeId};

const FORMAT: u32 = 1;
const META: TableDefinition<'_, &str, u32> = TableDefinition::new("keepspan");
const HEADS: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new("heads");
const PIECES: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("pieces");
const LOG: TableDefinition<'_, (&str, u64), &[u8]> = TableDefinition::new("log");
const CLAIMS: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new("claims");

/// There while the file may hold bytes of what was sealed.
const UNSCRUBBED: &str = "unscrubbed";
/// There while free pages are overwritten.
const ZEROS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("zeros");

/// What fills 16, 8, 4, 2 and 1 pages of 4,096 bytes exactly: a leaf of one entry spends 4 bytes on itself, 4 on the
/// value's end and 8 on the key.
const FITS: [usize; 5] = [65_520, 32_752, 16_368, 8_176, PAGE];
const PAGE: usize = 4_080;

/// What a head says instead of its first piece when the blob is sealed.
const SEALED: u64 = u64::MAX;

/// Bytes of pages kept in memory; the system's page cache keeps the rest.
const CACHE: usize = 64 << 20;

type Reopen = Box<dyn Fn(&Path) -> Result<Database, StoreError> + Send + Sync>;

/// The embedded store: one file that one process holds at a time.
///
/// A handle that met an I/O error opens the file anew at its next use, so a step that failed on a full disk can be run
/// again once there is space. Until then reads may fail too: opening the file anew takes a page or two.
///
/// A commit that [seals](Batch::sealing) also overwrites every free page of the file, since older copies of the sealed
/// bytes may lie in them, and then compacts it: O(pages of the file), while other threads wait. When that is interrupted,
/// the commit is [`StoreError::Unacknowledged`], and the next use of the handle, or the next open for writing, finishes
/// it before anything else. What the file system and the disk keep of a file's former bytes (snapshots, journals, spare
/// blocks) is out of reach.
pub struct EmbeddedStore {
    path: PathBuf,
    read_only: bool,
    reopen: Reopen,
    database: RwLock<Option<Database>>,
}

/// Why an attempt on the engine failed.
enum Fault {
    /// Decided; nothing to do about it here.
    Refused(StoreError),
    /// The engine failed before it was asked to commit: nothing is visible.
    Engine(redb::Error),
    /// The engine failed in its commit: the file knows whether it happened.
    Commit(redb::Error),
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl From<redb::CommitError> for Fault {
    fn from(error: redb::CommitError) -> Self {
        Self::Commit(error.into())
    }
}

macro_rules! engine_faults {
    ($($error:ty),*) => { $(impl From<$error> for Fault {
        fn from(error: $error) -> Self {
            Self::Engine(error.into())
        }
    })* };
}
engine_faults!(redb::TransactionError, redb::TableError, redb::StorageError, redb::CompactionError);

impl EmbeddedStore {
    /// Opens the store in the file at `path`, and creates it when there is none; the folder must exist. On Unix a new
    /// file is readable by its owner only.
    ///
    /// # Errors
    /// [`StoreError::InUse`], [`StoreError::NotAStore`], [`StoreError::Version`] or [`StoreError::Io`], with the path.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::with(path, false, open_or_create)
    }

    /// As [`open`](Self::open), but a missing file is an error: for a tool whose user misspelt the path.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_existing(path: &Path) -> Result<Self, StoreError> {
        Self::with(path, false, open_file)
    }

    /// Opens the store in the file at `path` and never writes to the file: what the engine must write to open one that was
    /// not closed (a repair, O(file)) stays in memory. Any number of readers may have a file open, but none while a
    /// writer has. A commit and a claim are refused.
    ///
    /// # Errors
    /// As [`open_existing`](Self::open_existing).
    pub fn open_read_only(path: &Path) -> Result<Self, StoreError> {
        Self::with(path, true, |path| {
            no_pipe(path)?;
            let storage = Overlay::open(path).map_err(|error| open_error(error, path))?;
            let database = builder().create_with_backend(storage).map_err(|error| open_error(error, path))?;
            checked(database, path)
        })
    }

    /// A store over any storage of the engine, for tests of failing disks; `path` is the file under it.
    #[doc(hidden)]
    pub fn over<B: redb::StorageBackend>(
        path: &Path,
        storage: impl Fn() -> io::Result<B> + Send + Sync + 'static,
    ) -> Result<Self, StoreError> {
        Self::with(path, false, move |path| {
            let storage = storage().map_err(|source| StoreError::Io { path: path.to_path_buf(), source })?;
            let database = builder().create_with_backend(storage).map_err(|error| open_error(error, path))?;
            prepare(&database).map_err(|fault| fault.into_error(path))?;
            scrubbed(database, path)
        })
    }

    fn with(
        path: &Path,
        read_only: bool,
        open: impl Fn(&Path) -> Result<Database, StoreError> + Send + Sync + 'static,
    ) -> Result<Self, StoreError> {
        let path = path.to_path_buf();
        let database = RwLock::new(Some(open(&path)?));
        Ok(Self { path, read_only, reopen: Box::new(open), database })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Every episode that has records, ascending, with their number. O(episodes · log of the store).
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn episodes(&self) -> Result<Vec<(EpisodeId, u64)>, StoreError> {
        self.answer(|database| {
            let log = database.begin_read()?.open_table(LOG)?;
            let (mut episodes, mut next) = (Vec::new(), log.first()?);
            while let Some((key, _)) = next {
                let episode = EpisodeId::new(key.value().0);
                let records = length_in(&log, &episode)?;
                let rest = (Bound::Excluded((episode.as_str(), u64::MAX)), Bound::Unbounded);
                next = log.range::<(&str, u64)>(rest)?.next().transpose()?;
                episodes.push((episode, records));
            }
            Ok(episodes)
        })
    }

    /// Runs `work`, once more when another thread's I/O error is what stopped it.
    fn run<T>(&self, work: impl Fn(&Database) -> Result<T, Fault>) -> Result<T, Fault> {
        match self.attempt(&work) {
            Err(Fault::Engine(redb::Error::PreviousIo)) => {
                self.close();
                self.attempt(&work)
            }
            // The engine refuses all work after an I/O error until the file is opened again.
            Err(fault @ (Fault::Engine(_) | Fault::Commit(_))) => {
                self.close();
                Err(fault)
            }
            done => done,
        }
    }

    fn attempt<T>(&self, work: impl Fn(&Database) -> Result<T, Fault>) -> Result<T, Fault> {
        if let Some(database) = self.database.read().unwrap_or_else(PoisonError::into_inner).as_ref() {
            return work(database);
        }
        let mut slot = self.database.write().unwrap_or_else(PoisonError::into_inner);
        let database = match slot.take() {
            Some(database) => database,
            None => (self.reopen)(&self.path)?,
        };
        work(slot.insert(database))
    }

    fn close(&self) {
        *self.database.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn writable(&self) -> Result<(), StoreError> {
        if self.read_only { Err(StoreError::ReadOnly { path: self.path.clone() }) } else { Ok(()) }
    }

    /// Scrubs the file while nobody reads it: the engine keeps the pages of a read that is going on.
    fn scrub(&self) -> Result<(), StoreError> {
        let mut slot = self.database.write().unwrap_or_else(PoisonError::into_inner);
        // On an error the handle stays closed, and opening it tries again.
        let database = match slot.take() {
            Some(database) => scrubbed(database, &self.path)?,
            None => (self.reopen)(&self.path)?,
        };
        *slot = Some(database);
        Ok(())
    }

    fn answer<T>(&self, work: impl Fn(&Database) -> Result<T, Fault>) -> Result<T, StoreError> {
        self.run(work).map_err(|fault| fault.into_error(&self.path))
    }

    /// After a commit that failed midway: the file, opened again, says whether it happened.
    fn settle<T>(&self, error: redb::Error, happened: Result<Option<T>, Fault>) -> Result<T, StoreError> {
        match happened {
            Ok(Some(outcome)) => Ok(outcome),
            Ok(None) => Err(Fault::Commit(error).into_error(&self.path)),
            // New pages run out of space before the header that makes them count is written over in place.
            Err(_) if is_full(&error) => Err(Fault::Commit(error).into_error(&self.path)),
            Err(_) => Err(StoreError::Unacknowledged),
        }
    }
}

impl fmt::Debug for EmbeddedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedStore").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Store for EmbeddedStore {
    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        self.writable()?;
        let committed = match self.run(|database| write(database, batch)) {
            Err(Fault::Commit(error)) => {
                self.settle(error, self.run(|database| Ok(holds(database, batch)?.then_some(()))))
            }
            done => done.map_err(|fault| fault.into_error(&self.path)),
        };
        match committed {
            // The log has the records, but the file may have the bytes.
            Ok(()) if !batch.seals().is_empty() => self.scrub().map_err(|_| StoreError::Unacknowledged),
            committed => committed,
        }
    }

    fn get(&self, digest: &Digest) -> Result<Vec<u8>, StoreError> {
        self.answer(|database| {
            let read = database.begin_read()?;
            let found = blobs(&read.open_table(HEADS)?, &read.open_table(PIECES)?, &[*digest])?;
            Ok(found.into_iter().next().unwrap_or_default())
        })
    }

    fn get_many(&self, digests: &[Digest]) -> Result<Vec<Vec<u8>>, StoreError> {
        self.answer(|database| {
            let read = database.begin_read()?;
            blobs(&read.open_table(HEADS)?, &read.open_table(PIECES)?, digests)
        })
    }

    fn read(&self, episode: &EpisodeId, from: u64, most: u64) -> Result<Vec<Vec<u8>>, StoreError> {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        self.answer(|database| {
            let log = database.begin_read()?.open_table(LOG)?;
            log.range(keys(episode, from))?.take(most).map(|entry| Ok(entry?.1.value().to_vec())).collect()
        })
    }

    fn length(&self, episode: &EpisodeId) -> Result<u64, StoreError> {
        self.answer(|database| length_in(&database.begin_read()?.open_table(LOG)?, episode))
    }

    fn claim(&self, signature: &Digest, holder: &[u8]) -> Result<Claim, StoreError> {
        self.writable()?;
        match self.run(|database| take(database, signature, holder)) {
            Err(Fault::Commit(error)) => match self.run(|database| held(database, signature)) {
                // By this call or by one after it: a holder of its own would tell, but need not be unique.
                Ok(true) => Err(StoreError::Unacknowledged),
                free => self.settle(error, free.map(|_| None)),
            },
            done => done.map_err(|fault| fault.into_error(&self.path)),
        }
    }
}

fn write(database: &Database, batch: &Batch) -> Result<(), Fault> {
    // Durable when `commit` returns: the engine's default. Its quick repair stays off: after a crash it opens 400 MB in
    // 0.16 s instead of 0.54 s, and every 4 KB commit pays a third more bytes and half as much time again for that.
    let write = database.begin_write()?;
    {
        let mut log = write.open_table(LOG)?;
        let (episode, expected) = (batch.episode(), batch.expected());
        let found = length_in(&log, episode)?;
        if found != expected {
            return Err(StoreError::Conflict { episode: episode.clone(), expected, found }.into());
        }
        for (number, record) in (expected..).zip(batch.records()) {
            log.insert((episode.as_str(), number), record.as_slice())?;
        }
        let (mut heads, mut pieces) = (write.open_table(HEADS)?, write.open_table(PIECES)?);
        let mut next = after(pieces.last()?.map(|(number, _)| number.value()))?;
        for digest in batch.seals() {
            seal(&mut heads, &mut pieces, digest)?;
        }
        for blob in batch.blobs() {
            next = put(&mut heads, &mut pieces, blob, next)?;
        }
    }
    if !batch.seals().is_empty() {
        write.open_table(META)?.insert(UNSCRUBBED, 1)?;
    }
    Ok(write.commit()?)
}

/// Writes `blob`, when it is new, from piece `first` on; the number of the next free piece.
fn put(
    heads: &mut Table<'_, &'static [u8; 32], &'static [u8]>,
    pieces: &mut Table<'_, u64, &'static [u8]>,
    blob: &Blob,
    first: u64,
) -> Result<u64, Fault> {
    if heads.get(blob.digest().as_bytes())?.is_some() {
        return Ok(first);
    }
    let (mut rest, mut next) = (blob.bytes(), first);
    for size in FITS {
        while let Some((piece, more)) = rest.split_at_checked(size) {
            pieces.insert(next, piece)?;
            (rest, next) = (more, after(Some(next))?);
        }
    }
    let head = [first.to_le_bytes().as_slice(), &next.to_le_bytes(), rest].concat();
    heads.insert(blob.digest().as_bytes(), head.as_slice())?;
    Ok(next)
}

/// Leaves a stub as long as the head was: the engine overwrites a value by one of the same length, and otherwise moves
/// what follows, which may leave a copy of it at the end of the page.
fn seal(
    heads: &mut Table<'_, &'static [u8; 32], &'static [u8]>,
    pieces: &mut Table<'_, u64, &'static [u8]>,
    digest: &Digest,
) -> Result<(), Fault> {
    let mut head = heads.get(digest.as_bytes())?.map_or(vec![0; 16], |head| head.value().to_vec());
    if let Some((first, end, _)) = parts(&head) {
        pieces.retain_in(first..end, |_, _| false)?;
    }
    head.fill(u8::MAX);
    heads.insert(digest.as_bytes(), head.as_slice())?;
    Ok(())
}

/// The first piece, the one after the last, and the tail.
fn parts(head: &[u8]) -> Option<(u64, u64, &[u8])> {
    let (first, head) = head.split_first_chunk()?;
    let (end, tail) = head.split_first_chunk()?;
    Some((u64::from_le_bytes(*first), u64::from_le_bytes(*end), tail))
}

/// Where a blob is: the numbers of its pieces, and what lies beside its digest.
struct Place {
    digest: Digest,
    pieces: Range<u64>,
    tail: Vec<u8>,
    /// Which of those asked for.
    at: usize,
}

/// The blobs under `digests`, in their order. What was written together lies together, and is read by one walk.
fn blobs(
    heads: &ReadOnlyTable<&'static [u8; 32], &'static [u8]>,
    pieces: &ReadOnlyTable<u64, &'static [u8]>,
    digests: &[Digest],
) -> Result<Vec<Vec<u8>>, Fault> {
    let mut places = Vec::with_capacity(digests.len());
    for (at, digest) in digests.iter().enumerate() {
        places.push(place(heads, *digest, at)?);
    }
    places.sort_unstable_by_key(|place| place.pieces.start);
    let mut found = vec![Vec::new(); digests.len()];
    for run in places.chunk_by(|one, other| one.pieces.end == other.pieces.start) {
        let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
        let mut walk = pieces.range(first.pieces.start..last.pieces.end)?;
        for place in run {
            let mut bytes = Vec::new();
            for number in place.pieces.clone() {
                match walk.next().transpose()? {
                    Some((key, piece)) if key.value() == number => {
                        // Most blobs are one piece and a tail: no room for more, and no second allocation.
                        let spare = if number == place.pieces.start { place.tail.len() } else { 0 };
                        bytes.reserve_exact(piece.value().len().saturating_add(spare));
                        bytes.extend_from_slice(piece.value());
                    }
                    _ => return Err(StoreError::Corrupt { digest: place.digest }.into()),
                }
            }
            bytes.extend_from_slice(&place.tail);
            if let Some(slot) = found.get_mut(place.at) {
                *slot = bytes;
            }
        }
    }
    Ok(found)
}

fn place(heads: &ReadOnlyTable<&'static [u8; 32], &'static [u8]>, digest: Digest, at: usize) -> Result<Place, Fault> {
    let Some(head) = heads.get(digest.as_bytes())? else {
        return Err(StoreError::Missing { digest }.into());
    };
    match parts(head.value()) {
        Some((SEALED, ..)) => Err(StoreError::Sealed { digest }.into()),
        Some((first, end, tail)) => Ok(Place { digest, pieces: first..end, tail: tail.to_vec(), at }),
        None => Err(StoreError::Corrupt { digest }.into()),
    }
}

/// The log's keys of `episode` from `from` on: the name and the number are compared apart, so no name is part of
/// another.
fn keys(episode: &EpisodeId, from: u64) -> RangeInclusive<(&str, u64)> {
    (episode.as_str(), from)..=(episode.as_str(), u64::MAX)
}

fn length_in(log: &impl ReadableTable<(&'static str, u64), &'static [u8]>, episode: &EpisodeId) -> Result<u64, Fault> {
    let last = log.range(keys(episode, 0))?.next_back().transpose()?;
    after(last.map(|(key, _)| key.value().1))
}

/// The number that follows the last one; 0 when there is none.
fn after(last: Option<u64>) -> Result<u64, Fault> {
    let next = last.map_or(Some(0), |last| last.checked_add(1));
    next.ok_or_else(|| StoreError::backend("a table has no number left").into())
}

/// Whether everything of `batch` is in the file.
fn holds(database: &Database, batch: &Batch) -> Result<bool, Fault> {
    let read = database.begin_read()?;
    let (log, heads) = (read.open_table(LOG)?, read.open_table(HEADS)?);
    let mut found = log.range(keys(batch.episode(), batch.expected()))?;
    for record in batch.records() {
        match found.next().transpose()? {
            Some((_, bytes)) if bytes.value() == record.as_slice() => {}
            _ => return Ok(false),
        }
    }
    for blob in batch.blobs() {
        if heads.get(blob.digest().as_bytes())?.is_none() {
            return Ok(false);
        }
    }
    for digest in batch.seals() {
        let head = heads.get(digest.as_bytes())?;
        if !head.is_some_and(|head| matches!(parts(head.value()), Some((SEALED, ..)))) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn take(database: &Database, signature: &Digest, holder: &[u8]) -> Result<Claim, Fault> {
    let write = database.begin_write()?;
    {
        let mut claims = write.open_table(CLAIMS)?;
        if let Some(earlier) = claims.get(signature.as_bytes())? {
            return Ok(Claim::HeldBy(earlier.value().to_vec()));
        }
        claims.insert(signature.as_bytes(), holder)?;
    }
    write.commit()?;
    Ok(Claim::Taken)
}

/// Overwrites every free page of the file when a seal is waiting for it: a table of zeros takes them all, which shows when
/// the file grows, and is deleted again. Then cuts off what the file grew, which a next scrub would have to fill.
fn scrub(database: &mut Database, path: &Path) -> Result<(), Fault> {
    if database.begin_read()?.open_table(META)?.get(UNSCRUBBED)?.is_none() {
        return Ok(());
    }
    // What a commit replaced is free after the next one.
    database.begin_write()?.commit()?;
    let length = || fs::metadata(path).map(|file| file.len()).map_err(|error| Fault::Engine(redb::Error::Io(error)));
    let full = length()?;
    let write = database.begin_write()?;
    {
        let mut zeros = write.open_table(ZEROS)?;
        for number in 0.. {
            if length()? > full {
                break;
            }
            // More than a file has pages, and it did not grow: it is not the one that is open, and never will.
            if number > full.div_euclid(4_096) {
                let moved = io::Error::other("another file is in its place");
                return Err(StoreError::Io { path: path.to_path_buf(), source: moved }.into());
            }
            zeros.insert(number, [0; PAGE].as_slice())?;
        }
    }
    write.commit()?;
    let write = database.begin_write()?;
    write.delete_table(ZEROS)?;
    write.open_table(META)?.remove(UNSCRUBBED)?;
    write.commit()?;
    database.compact()?;
    Ok(())
}

fn held(database: &Database, signature: &Digest) -> Result<bool, Fault> {
    Ok(database.begin_read()?.open_table(CLAIMS)?.get(signature.as_bytes())?.is_some())
}

fn builder() -> Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE);
    builder
}

fn open_or_create(path: &Path) -> Result<Database, StoreError> {
    match open_file(path) {
        Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            create(path).map_err(|fault| fault.into_error(path))?;
            open_file(path)
        }
        opened => opened,
    }
}

/// Opening a pipe would wait for somebody at its other end.
fn no_pipe(path: &Path) -> Result<(), StoreError> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() && !found.is_dir() => Err(StoreError::NotAStore { path: path.to_path_buf() }),
        _ => Ok(()),
    }
}

fn open_file(path: &Path) -> Result<Database, StoreError> {
    no_pipe(path)?;
    scrubbed(checked(builder().open(path).map_err(|error| open_error(error, path))?, path)?, path)
}

fn scrubbed(mut database: Database, path: &Path) -> Result<Database, StoreError> {
    scrub(&mut database, path).map_err(|fault| fault.into_error(path))?;
    Ok(database)
}

fn checked(database: Database, path: &Path) -> Result<Database, StoreError> {
    match version(&database).map_err(|fault| fault.into_error(path))? {
        Some(FORMAT) => Ok(database),
        Some(found) => Err(StoreError::Version { path: path.to_path_buf(), found, supported: FORMAT }),
        None => Err(StoreError::NotAStore { path: path.to_path_buf() }),
    }
}

/// Creates the file whole: one that a crash left half made would never open again, so it gets its name last.
fn create(path: &Path) -> Result<(), Fault> {
    let io = |source| Fault::Engine(redb::Error::Io(source));
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let new = tempfile::Builder::new().prefix(".keepspan-").tempfile_in(folder).map_err(io)?;
    let database = builder().create(new.path()).map_err(|error| open_error(error, path))?;
    prepare(&database)?;
    database.close().map_err(|error| open_error(error, path))?;
    new.as_file().sync_all().map_err(io)?;
    match new.persist_noclobber(path) {
        // Another process was first, with a whole file too.
        Err(lost) if lost.error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        Err(lost) => return Err(io(lost.error)),
        Ok(_) => {}
    }
    // The name is durable on Unix only when its folder is; elsewhere a folder cannot be opened as a file.
    if cfg!(unix) { File::open(folder).and_then(|folder| folder.sync_all()).map_err(io) } else { Ok(()) }
}

fn prepare(database: &Database) -> Result<(), Fault> {
    let write = database.begin_write()?;
    write.open_table(HEADS)?;
    write.open_table(PIECES)?;
    write.open_table(LOG)?;
    write.open_table(CLAIMS)?;
    write.open_table(META)?.insert("format", FORMAT)?;
    Ok(write.commit()?)
}

/// The format the file records; none when it is not ours.
fn version(database: &Database) -> Result<Option<u32>, Fault> {
    match database.begin_read()?.open_table(META) {
        Ok(meta) => Ok(meta.get("format")?.map(|found| found.value())),
        Err(redb::TableError::Storage(error)) => Err(error.into()),
        Err(_) => Ok(None),
    }
}

fn open_error(error: DatabaseError, path: &Path) -> StoreError {
    use io::ErrorKind::{InvalidData, UnexpectedEof};

    let path_buf = path.to_path_buf();
    match error {
        DatabaseError::DatabaseAlreadyOpen | DatabaseError::LockProtocolMismatch => {
            StoreError::InUse { path: path_buf }
        }
        // This engine's own older formats hold no store of ours.
        DatabaseError::UpgradeRequired(_) => StoreError::NotAStore { path: path_buf },
        DatabaseError::Storage(redb::StorageError::Io(source))
            if matches!(source.kind(), InvalidData | UnexpectedEof) =>
        {
            StoreError::NotAStore { path: path_buf }
        }
        other => Fault::Engine(other.into()).into_error(path),
    }
}

fn is_full(error: &redb::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};

    matches!(error, redb::Error::Io(source) if matches!(source.kind(), StorageFull | QuotaExceeded | FileTooLarge))
}

impl Fault {
    fn into_error(self, path: &Path) -> StoreError {
        match self {
            Self::Refused(error) => error,
            Self::Engine(redb::Error::Io(source)) | Self::Commit(redb::Error::Io(source)) => {
                StoreError::Io { path: path.to_path_buf(), source }
            }
            Self::Engine(error) | Self::Commit(error) => StoreError::backend(error),
        }
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]
mod tests {
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
        super::super::conformance::check(open).unwrap();
    }

    #[test]
    fn opens_again_with_everything() {
        let folder = folder();
        let path = folder.path().join("store");
        let text = vec![7; 70_000];
        let digest = Digest::of(&text);
        let store = EmbeddedStore::open(&path).unwrap();
        store.commit(&batch(0, text.clone())).unwrap();
        store.claim(&digest, b"me").unwrap();
        drop(store);
        let store = EmbeddedStore::open(&path).unwrap();
        assert_eq!(store.path(), path);
        assert_eq!(store.get(&digest).unwrap(), text);
        assert_eq!(store.length(&EpisodeId::new("e")).unwrap(), 1);
        assert_eq!(store.claim(&digest, b"you").unwrap(), Claim::HeldBy(b"me".to_vec()));
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
            let result =
                store.commit(&Batch::new(EpisodeId::new("e"), 2, vec![], vec![vec![3]]).sealing(sealed.clone()));
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
        store.claim(&Digest::of(b"one"), b"me").unwrap();
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
                let refusals = [
                    store.commit(&batch(40, vec![1])).unwrap_err(),
                    store.claim(&Digest::of(b"two"), b"me").unwrap_err(),
                ];
                for refusal in refusals {
                    assert!(matches!(&refusal, StoreError::ReadOnly { path: named } if named == path), "{refusal}");
                }
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
}
