//! Verify: every record, every chain, every blob.

use std::{
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
};

use super::History;
use crate::{
    Digest, EpisodeId, JournalError, SpanId,
    store::{Store, StoreError},
};

/// How far a verification is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Blobs read and hashed.
    pub blobs: u64,
    /// Blobs in all.
    pub of: u64,
    /// Bytes read and hashed.
    pub bytes: u64,
}

/// What a verification found.
#[derive(Debug)]
#[non_exhaustive]
pub struct Verified {
    /// Records of the log that were read.
    pub records: u64,
    /// Blobs that were read and hashed.
    pub blobs: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Blobs that the store has sealed, as the log says.
    pub sealed: u64,
    /// Everything that does not check out; empty when all is well.
    pub faults: Vec<Damage>,
}

/// Something that does not check out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// The log itself; what comes after that record was not read.
    #[error(transparent)]
    Journal(JournalError),
    /// The text of these spans.
    #[error("{}: {error}", named(spans))]
    Text {
        /// The spans that have it.
        spans: Vec<SpanId>,
        /// What the store said.
        error: StoreError,
    },
}

fn named(spans: &[SpanId]) -> String {
    crate::pointer::Ids(spans).to_string()
}

/// How many blobs are read at once.
const GROUP: usize = 64;

/// Reads an episode's whole log and every blob it names, on all cores, and checks digests, chains and derivations. `progress` is
/// told after each group of blobs.
pub fn verify<S: Store>(store: &S, episode: &EpisodeId, mut progress: impl FnMut(Progress)) -> Verified {
    let mut verified = Verified { records: 0, blobs: 0, bytes: 0, sealed: 0, faults: Vec::new() };
    let history = match History::read(store, episode) {
        Ok(history) => history,
        Err(error) => {
            verified.faults.push(Damage::Journal(error));
            return verified;
        }
    };
    verified.records = u64::try_from(history.entries().len()).unwrap_or(u64::MAX);
    let blobs = history.blobs();
    let groups: Vec<_> = blobs.chunks(GROUP).collect();
    let (next, (send, receive)) = (AtomicUsize::new(0), mpsc::channel());
    let workers = thread::available_parallelism().map_or(1, usize::from).min(groups.len());
    let mut now = Progress { of: u64::try_from(blobs.len()).unwrap_or(u64::MAX), ..Progress::default() };
    thread::scope(|scope| {
        for _ in 0..workers {
            let (next, groups, send, history) = (&next, &groups, send.clone(), &history);
            scope.spawn(move || {
                while let Some(group) = groups.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if send.send(checked(store, history, group)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(send);
        for group in receive {
            now.blobs = now.blobs.saturating_add(group.blobs);
            now.bytes = now.bytes.saturating_add(group.bytes);
            verified.sealed = verified.sealed.saturating_add(group.sealed);
            verified.faults.extend(group.faults);
            progress(now);
        }
    });
    (verified.blobs, verified.bytes) = (now.blobs, now.bytes);
    verified
}

#[derive(Default)]
struct Checked {
    blobs: u64,
    bytes: u64,
    sealed: u64,
    faults: Vec<Damage>,
}

fn checked<S: Store>(store: &S, history: &History, group: &[(Digest, Vec<SpanId>)]) -> Checked {
    let digests: Vec<_> = group.iter().map(|(digest, _)| *digest).collect();
    let mut all = Checked { blobs: u64::try_from(group.len()).unwrap_or(u64::MAX), ..Checked::default() };
    // One that is missing spoils the read of its group, and then each is read alone.
    let together = store.get_many(&digests).ok().filter(|found| found.len() == digests.len());
    let mut found = together.map(Vec::into_iter);
    for (digest, spans) in group {
        let bytes = match &mut found {
            Some(found) => found.next().ok_or(StoreError::Missing { digest: *digest }),
            None => store.get(digest),
        };
        match bytes {
            Ok(bytes) if Digest::of(&bytes) == *digest => {
                all.bytes = all.bytes.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
            }
            Ok(_) => {
                all.faults.push(Damage::Text { spans: spans.clone(), error: StoreError::Corrupt { digest: *digest } })
            }
            Err(StoreError::Sealed { .. }) if spans.iter().all(|span| history.is_gone(*span)) => {
                all.sealed = all.sealed.saturating_add(1);
            }
            Err(error) => all.faults.push(Damage::Text { spans: spans.clone(), error }),
        }
    }
    all
}
