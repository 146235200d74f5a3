//! What can go wrong in a store.

use std::path::PathBuf;

use crate::{Digest, EpisodeId};

/// Why a store refused or failed. The window that asked is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another writer appended to the episode first.
    #[error(
        "episode `{episode}` has {found} records and not the expected {expected}: another writer was first; \
         nothing of this batch was written; go on in an episode of your own"
    )]
    Conflict {
        /// The episode.
        episode: EpisodeId,
        /// The number of records the batch was made for.
        expected: u64,
        /// The number of records there are.
        found: u64,
    },
    /// A signature that the batch claims is held (rule R19).
    #[error("the signature {signature} is claimed already: nothing of this batch was written; ask who holds it")]
    Claimed {
        /// The signature.
        signature: Digest,
        /// Who holds it.
        holder: Vec<u8>,
    },
    /// No blob has this digest.
    #[error("the store has no blob {digest}: it was never committed here, or the file was replaced; check the path")]
    Missing {
        /// The digest asked for.
        digest: Digest,
    },
    /// The blob was sealed (rule R23).
    #[error(
        "blob {digest} was sealed: its bytes must not be kept and are gone for good; a recall of its span names the \
         reason; there is nothing to repair"
    )]
    Sealed {
        /// The digest asked for.
        digest: Digest,
    },
    /// A blob's bytes do not match its digest.
    #[error("blob {digest} came back with other bytes: the storage under the store is damaged; restore it from a copy")]
    Corrupt {
        /// The digest asked for.
        digest: Digest,
    },
    /// Another process, or another handle of this one, has the file open.
    #[error("{}: this store is open already, in another process or by another handle of this one; close it, or share one handle", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The file is something else.
    #[error("{}: not a keepspan store; choose another path", path.display())]
    NotAStore {
        /// The file.
        path: PathBuf,
    },
    /// The file was written by another version.
    #[error("{}: store format {found}, and this version reads {supported}; use the keepspan that wrote it", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The format the file records.
        found: u32,
        /// The format this version reads.
        supported: u32,
    },
    /// The store was opened for reading.
    #[error("{}: opened for reading only, nothing was written; open it with `EmbeddedStore::open` to write", path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// The file system refused: no space, read-only, no such folder.
    #[error("{}: {source}; free space or fix the path, then try again", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The backend stopped before it said whether the commit is durable.
    #[error("the store did not say whether the commit happened: read the episode's log to see")]
    Unacknowledged,
    /// Anything else a backend reports.
    #[error("the store failed: {0}; mend it, then run the step again")]
    Backend(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl StoreError {
    /// Wraps a backend's own error.
    pub fn backend(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Backend(error.into())
    }
}
