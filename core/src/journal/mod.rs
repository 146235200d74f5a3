//! The journal: one record a commit, each sealed by a digest over all before it, and the window that they come to.
//!
//! A record is a version byte, the entry, and SHA-256 over the previous record's digest and both. So a record that was
//! changed, removed or moved is found by whoever reads on, and the log of one episode is not taken for another's.

mod error;
mod event;
mod replay;
mod tables;
#[cfg(test)]
mod tests;
mod walk;

use std::{sync::Arc, time::SystemTime};

use serde::Serialize;

pub use self::error::{Fault, JournalError};
pub(crate) use self::{
    event::{Ceiling, Event, IntentRecord, LaneRecord, MutationRecord, Probe, SpanRecord, TombstoneRecord},
    replay::{Facts, Replay, Replayed, reader},
    tables::Tables,
    walk::{PAGE, walk},
};
use crate::{Digest, EpisodeId, Tombstone, accounting::Note, store::AsyncStore};

/// The version of the records, the first byte of each; a log of another is refused.
const VERSION: u8 = 7;

/// What one commit did, as it lies in its record.
#[derive(Clone, Debug)]
pub(crate) struct Entry<'a> {
    /// Milliseconds since 1970, by the clock of whoever wrote; 0 where there is none.
    pub(crate) time: u64,
    /// How many spans had entered the window before it.
    pub(crate) spans: u64,
    /// Tool names that are new.
    pub(crate) names: Vec<Arc<str>>,
    /// What pruning did or cost since the last commit, without one of its own.
    pub(crate) notes: Vec<Note>,
    pub(crate) events: Events<'a>,
}

/// The events of a record, each read when it is asked for: a log has hundreds of thousands.
#[derive(Clone, Debug)]
pub(crate) struct Events<'a> {
    left: u64,
    bytes: &'a [u8],
}

impl Events<'_> {
    /// How many there can be: each takes a byte at least.
    pub(crate) fn at_most(&self) -> u64 {
        self.left.min(u64::try_from(self.bytes.len()).unwrap_or(u64::MAX))
    }
}

impl Iterator for Events<'_> {
    type Item = Result<Event, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.left.checked_sub(1) {
            None if self.bytes.is_empty() => return None,
            None => {}
            Some(left) => {
                if let Ok((event, rest)) = postcard::take_from_bytes(self.bytes) {
                    (self.left, self.bytes) = (left, rest);
                    return Some(Ok(event));
                }
            }
        }
        // Once: what comes after bytes that are no event is none either.
        (self.left, self.bytes) = (0, &[]);
        Some(Err(Fault::Unreadable))
    }
}

/// [`Entry`] as it is written, without copies.
#[derive(Debug, Serialize)]
pub(crate) struct Unsealed<'a> {
    pub(crate) time: u64,
    pub(crate) spans: u64,
    pub(crate) names: &'a [Arc<str>],
    pub(crate) notes: &'a [Note],
    pub(crate) events: &'a [Event],
}

/// A record ready to be committed.
#[derive(Clone, Debug)]
pub(crate) struct Sealed {
    pub(crate) bytes: Vec<u8>,
    /// The digest that the next record goes on from.
    pub(crate) chain: Digest,
}

impl Unsealed<'_> {
    pub(crate) fn seal(&self, after: &Digest) -> Result<Sealed, postcard::Error> {
        // Most events are a span or a tombstone, of some 60 bytes.
        let mut bytes = Vec::with_capacity(self.events.len().saturating_mul(64).saturating_add(128));
        bytes.push(VERSION);
        let mut bytes = postcard::to_extend(self, bytes)?;
        let chain = Digest::of_two(after.as_bytes(), &bytes);
        bytes.extend_from_slice(chain.as_bytes());
        Ok(Sealed { bytes, chain })
    }
}

/// What the first record of an episode goes on from.
pub(crate) fn beginning(episode: &EpisodeId) -> Digest {
    Digest::of_two(b"keepspan log\0", episode.as_str().as_bytes())
}

/// The digest a record ends with.
pub(crate) fn chain(record: &[u8]) -> Option<Digest> {
    record.last_chunk().copied().map(Digest::from_bytes)
}

/// Whether a record goes on from `after`.
pub(crate) fn follows(record: &[u8], after: &Digest) -> bool {
    let parts = record.split_last_chunk::<32>();
    parts.is_some_and(|(body, chain)| Digest::of_two(after.as_bytes(), body).as_bytes() == chain)
}

/// A record's entry, and what the next one goes on from, unchecked.
pub(crate) fn read(record: &[u8]) -> Result<(Entry<'_>, Digest), Fault> {
    let (body, chain) = record.split_last_chunk::<32>().ok_or(Fault::Unreadable)?;
    match body.split_first() {
        Some((&VERSION, entry)) => {
            let parts = postcard::take_from_bytes(entry).map_err(|_| Fault::Unreadable)?;
            let ((time, spans, names, notes, left), bytes) = parts;
            Ok((Entry { time, spans, names, notes, events: Events { left, bytes } }, Digest::from_bytes(*chain)))
        }
        Some((found, _)) => Err(Fault::Version { found: *found, supported: VERSION }),
        None => Err(Fault::Unreadable),
    }
}

/// Every tombstone of an episode, oldest first.
pub(crate) async fn tombstones<S: AsyncStore>(store: &S, episode: &EpisodeId) -> Result<Vec<Tombstone>, JournalError> {
    let (mut tables, mut found) = (Tables::default(), Vec::new());
    walk(store, episode, |_, entry, _| {
        tables.enter(&entry);
        for event in entry.events {
            let event = event?;
            tables.follow(&event);
            if let Event::Evicted(record) = event {
                found.push(tables.tombstone(record).ok_or(Fault::Unknown { what: "lane, tool name or policy" })?);
            }
        }
        Ok(())
    })
    .await?;
    Ok(found)
}

/// Milliseconds since 1970; 0 where there is no clock, or one that is before that.
pub(crate) fn now() -> u64 {
    if cfg!(all(target_family = "wasm", target_os = "unknown")) {
        return 0;
    }
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
