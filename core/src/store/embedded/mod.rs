//! The embedded default: one file, every commit durable on return.
//!
//! Tables: `heads` (digest -> where the blob's pieces are, and its tail; or that it is sealed), `pieces` (number -> bytes), `log` (episode
//! and number -> record), `claims` (signature -> holder), `keepspan` (the format version, whether a scrub is due).
//!
//! The engine rounds a value that does not fit into a page up to a power of two of pages, so 64 KB and a few bytes
//! would take 128 KB. A blob is therefore cut into pieces that fill their pages exactly, and what is left, less than a
//! page, lies beside the digest. Pieces are numbered in the order they come, so a commit writes them next to each other
//! and only the short heads are spread by digest.

mod blobs;
#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]
mod tests;

use std::{
    fmt,
    fs::{self, File},
    io,
    ops::{Bound, RangeInclusive},
    path::{Path, PathBuf},
    sync::{PoisonError, RwLock},
};

use redb::{Builder, Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition};

use self::blobs::{PAGE, SEALED, blobs, parts, put, seal};
use super::{Batch, Store, StoreError, overlay::Overlay};
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

    fn holders(&self, signatures: &[Digest]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.answer(|database| {
            let claims = database.begin_read()?.open_table(CLAIMS)?;
            let holder =
                |signature: &Digest| Ok(claims.get(signature.as_bytes())?.map(|holder| holder.value().to_vec()));
            signatures.iter().map(holder).collect()
        })
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
        let mut claims = write.open_table(CLAIMS)?;
        for claim in batch.claims() {
            let earlier = claims.insert(claim.signature.as_bytes(), claim.holder.as_slice())?;
            if let Some(earlier) = earlier {
                let (signature, holder) = (claim.signature, earlier.value().to_vec());
                return Err(StoreError::Claimed { signature, holder }.into());
            }
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
    let claims = read.open_table(CLAIMS)?;
    for claim in batch.claims() {
        let holder = claims.get(claim.signature.as_bytes())?;
        if holder.is_none_or(|holder| holder.value() != claim.holder) {
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
