//! A file that is only read. What the engine writes all the same, to open a file that was not closed, stays in memory.

use std::{
    fmt,
    fs::File,
    io,
    ops::Bound,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

use redb::{BackendError, DatabaseError, StorageBackend, backends::FileBackend};

/// The file and, in memory, what was written over it. Locks are shared, so that readers exclude writers only.
pub(super) struct Overlay {
    file: FileBackend,
    over: Mutex<Over>,
}

struct Over {
    length: u64,
    /// How much of the file still counts.
    kept: u64,
    /// Offsets and bytes, oldest first: an open writes a few pages, and nothing after it writes.
    writes: Vec<(u64, Vec<u8>)>,
}

impl Overlay {
    pub(super) fn open(path: &Path) -> Result<Self, DatabaseError> {
        let file = FileBackend::new(File::open(path).map_err(redb::StorageError::from)?)?;
        let length = file.len().map_err(redb::StorageError::from)?;
        Ok(Self { file, over: Mutex::new(Over { length, kept: length, writes: Vec::new() }) })
    }

    fn over(&self) -> MutexGuard<'_, Over> {
        self.over.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Overlay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overlay").field("file", &self.file).finish_non_exhaustive()
    }
}

impl StorageBackend for Overlay {
    fn len(&self) -> io::Result<u64> {
        Ok(self.over().length)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let over = self.over();
        if over.length.checked_sub(offset).is_none_or(|rest| rest < size(out)) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let kept = index(over.kept.saturating_sub(offset)).min(out.len());
        let (from_file, beyond) = out.split_at_mut(kept);
        self.file.read(offset, from_file)?;
        beyond.fill(0);
        for (at, bytes) in &over.writes {
            let target = out.iter_mut().skip(index(at.saturating_sub(offset)));
            let source = bytes.iter().skip(index(offset.saturating_sub(*at)));
            target.zip(source).for_each(|(target, source)| *target = *source);
        }
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut over = self.over();
        over.length = length;
        over.kept = over.kept.min(length);
        for (at, bytes) in &mut over.writes {
            bytes.truncate(index(length.saturating_sub(*at)));
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.over().writes.push((offset, data.to_vec()));
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_shared_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_shared_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.query_lock_range(start, end)
    }
}

fn size(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

fn index(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}
