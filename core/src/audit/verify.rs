//! Verify: every record, every chain, every blob.

use std::{
    collections::HashSet,
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
};

use crate::{
    Digest, EpisodeId, JournalError, SpanId,
    journal::{Facts, Fault, PAGE, Replay, Replayed, chain, follows, read, reader, walk},
    store::{AsyncStore, Store, StoreError},
    window::{at_once, contents::Contents},
};

/// How far a verification is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Blobs looked up.
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
    /// Blobs that the log names, each looked up once; the sealed ones are among them.
    pub blobs: u64,
    /// The bytes that were read and hashed.
    pub bytes: u64,
    /// Of these, blobs that the store has sealed, as the log says.
    pub sealed: u64,
    /// Everything that does not check out; empty when all is well.
    pub faults: Vec<Damage>,
}

/// Something that does not check out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// A record of the log. After the first, only digests are checked: no window can be rebuilt from there on.
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
    /// What an action gave: a permit for the same request cannot say it any more.
    #[error("the outcome of `{action}`, attempt {attempt}: {error}")]
    Outcome {
        /// The action.
        action: String,
        /// The number of the attempt.
        attempt: u64,
        /// What the store said.
        error: StoreError,
    },
}

fn named(spans: &[SpanId]) -> String {
    crate::pointer::Ids(spans).to_string()
}

/// How many blobs are read at once.
const GROUP: usize = 256;

/// Reads an episode's whole log and every blob it names, on all cores, and checks digests, chains and derivations. `progress` is
/// told after each group of blobs. An episode that the store does not have is a fault.
pub fn verify<S: Store>(store: &S, episode: &EpisodeId, mut progress: impl FnMut(Progress)) -> Verified {
    let (named, faults) = Named::read(store, episode);
    let mut verified = Verified { records: named.records, blobs: 0, bytes: 0, sealed: 0, faults };
    let groups: Vec<_> = named.blobs.chunks(GROUP).collect();
    let (next, (send, receive)) = (AtomicUsize::new(0), mpsc::channel());
    let workers = thread::available_parallelism().map_or(1, usize::from).min(groups.len());
    let mut now = Progress { of: count(named.blobs.len()), ..Progress::default() };
    thread::scope(|scope| {
        for _ in 0..workers {
            let (next, groups, send, named) = (&next, &groups, send.clone(), &named);
            scope.spawn(move || {
                while let Some(group) = groups.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if send.send(named.checked(store, group)).is_err() {
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

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// The blobs that a log names.
struct Named {
    /// As far as the log adds up.
    contents: Contents,
    records: u64,
    /// In the order in which they were written, which is that of the file.
    blobs: Vec<Digest>,
    /// What actions gave, with their names and attempts.
    outcomes: Vec<(Digest, String, u64)>,
}

#[derive(Default)]
struct Checked {
    blobs: u64,
    bytes: u64,
    sealed: u64,
    faults: Vec<Damage>,
}

impl Named {
    /// Reads a log to its end, whatever is wrong with it.
    fn read<S: Store>(store: &S, episode: &EpisodeId) -> (Self, Vec<Damage>) {
        let mut replay = Replay::over(Contents::new(reader(episode), &[], None), &[]);
        let length = Store::length(store, episode);
        let whole = at_once(walk(store, episode, |_, entry, chain| replay.entry(entry, chain)));
        let mut beyond = Vec::new();
        let (records, faults) = match whole {
            // A page without records where the store has more is no end.
            Ok(records) if length.is_ok_and(|length| records < length) => {
                let cut = JournalError::Record { episode: episode.clone(), record: records, fault: Fault::Unreadable };
                (records, vec![Damage::Journal(cut)])
            }
            Ok(records) => (records, replay.settle().err().map(Damage::Journal).into_iter().collect()),
            Err(JournalError::Record { record, episode, fault }) => {
                let mut faults =
                    vec![Damage::Journal(JournalError::Record { record, episode: episode.clone(), fault })];
                (at_once(rest(store, &episode, record, &mut beyond, &mut faults)), faults)
            }
            Err(error) => (0, vec![Damage::Journal(error)]),
        };
        let Replayed { contents, facts: Facts { outcomes, .. } } = replay.replayed();
        let rows = contents.table.iter().filter(|(_, row)| row.durable).map(|(_, row)| row.digest);
        let mut seen = HashSet::new();
        let given = outcomes.iter().map(|(digest, ..)| *digest);
        let blobs = rows.chain(given).chain(beyond).filter(|digest| seen.insert(*digest)).collect();
        (Self { contents, records, blobs, outcomes }, faults)
    }

    fn spans(&self, digest: Digest) -> Vec<SpanId> {
        let durable = self.contents.table.iter().filter(|(_, entry)| entry.durable && entry.digest == digest);
        durable.map(|(span, _)| span).collect()
    }

    fn damage(&self, digest: Digest, spans: Vec<SpanId>, error: StoreError) -> Damage {
        match self.outcomes.iter().find(|(of, ..)| spans.is_empty() && *of == digest) {
            Some((_, action, attempt)) => Damage::Outcome { action: action.clone(), attempt: *attempt, error },
            None => Damage::Text { spans, error },
        }
    }

    fn checked<S: Store>(&self, store: &S, group: &[Digest]) -> Checked {
        let mut all = Checked { blobs: count(group.len()), ..Checked::default() };
        // One that is missing spoils the read of its group, and then each is read alone.
        let together = store.get_many(group).ok().filter(|found| found.len() == group.len());
        let mut found = together.map(Vec::into_iter);
        for digest in group {
            let bytes = match &mut found {
                Some(found) => found.next().ok_or(StoreError::Missing { digest: *digest }),
                None => store.get(digest),
            };
            let error = match bytes {
                Ok(bytes) if Digest::of(&bytes) == *digest => {
                    all.bytes = all.bytes.saturating_add(count(bytes.len()));
                    continue;
                }
                Ok(_) => StoreError::Corrupt { digest: *digest },
                Err(error) => error,
            };
            let spans = self.spans(*digest);
            let gone = |span: &SpanId| self.contents.gone.contains_key(span);
            match error {
                StoreError::Sealed { .. } if spans.iter().all(gone) => all.sealed = all.sealed.saturating_add(1),
                error => all.faults.push(self.damage(*digest, spans, error)),
            }
        }
        all
    }
}

/// What can still be said of a log beyond its first fault, `from`: which records do not follow or cannot be read, and what
/// blobs the others name. Gives the number of records.
async fn rest<S: Store>(
    store: &S,
    episode: &EpisodeId,
    from: u64,
    beyond: &mut Vec<Digest>,
    faults: &mut Vec<Damage>,
) -> u64 {
    let (mut number, mut before) = (from, None);
    let length = AsyncStore::length(store, episode).await.unwrap_or(u64::MAX);
    loop {
        let page = match AsyncStore::read(store, episode, number, PAGE).await {
            Ok(page) if page.is_empty() || number >= length => return number,
            Ok(page) => page,
            Err(error) => {
                faults.push(Damage::Journal(error.into()));
                return number;
            }
        };
        for record in &page {
            let linked = before.is_none_or(|before| follows(record, &before));
            let entry = read(record);
            let fault = if linked { entry.as_ref().err().cloned() } else { Some(Fault::Chain) };
            // The first one is told already.
            if let Some(fault) = fault.filter(|_| number > from) {
                faults.push(Damage::Journal(JournalError::Record { episode: episode.clone(), record: number, fault }));
            }
            if let Ok((entry, _)) = &entry {
                beyond.extend(entry.events.clone().filter_map(|event| event.ok()?.brings()));
            }
            before = chain(record);
            number = number.saturating_add(1);
        }
    }
}
