//! A log from its beginning, in pages, each record checked against the one before.

use std::thread;

use super::{Entry, Fault, JournalError, beginning, chain, follows, read};
use crate::{Digest, EpisodeId, store::AsyncStore};

/// How many records are read at once: commits, so some thousands of spans.
pub(crate) const PAGE: u64 = 256;

/// From how many bytes on a page is worth a second thread.
const LARGE: usize = 64 << 10;

/// What `each` makes of a record: its number, its entry and its digest.
type Each<'a> = &'a mut dyn FnMut(u64, Entry, Digest) -> Result<(), Fault>;

/// Walks an episode's log; gives the number of its records. The digests of a page are checked while it is read, on a second
/// thread, so `each` may see an entry whose page is refused: what it made of that is not to be used.
pub(crate) async fn walk<S: AsyncStore>(
    store: &S,
    episode: &EpisodeId,
    mut each: impl FnMut(u64, Entry, Digest) -> Result<(), Fault>,
) -> Result<u64, JournalError> {
    let (mut number, mut after) = (0_u64, beginning(episode));
    loop {
        let page = store.read(episode, number, PAGE).await?;
        let Some(last) = page.last() else { return Ok(number) };
        let done = checked(&page, after, number, &mut each);
        done.map_err(|(record, fault)| JournalError::Record { episode: episode.clone(), record, fault })?;
        number = number.saturating_add(u64::try_from(page.len()).unwrap_or(u64::MAX));
        after = chain(last).unwrap_or(after);
    }
}

/// Goes through a page from record `from` on; the first fault, with the number of its record.
fn checked(page: &[Vec<u8>], after: Digest, from: u64, each: Each<'_>) -> Result<(), (u64, Fault)> {
    // Hashing takes as long as reading does: the second thread hashes all and reads the second half.
    let (first, second) = page.split_at(page.len().div_euclid(2));
    let half = from.saturating_add(u64::try_from(first.len()).unwrap_or(u64::MAX));
    let beside = || (unlinked(page, after, from), second.iter().map(|record| read(record)).collect::<Vec<_>>());
    let ((unlinked, second), done) = thread::scope(|scope| {
        let large = page.iter().map(Vec::len).sum::<usize>() > LARGE;
        let other = large.then(|| thread::Builder::new().spawn_scoped(scope, beside).ok()).flatten();
        let done = told(first.iter().map(|record| read(record)), from, each);
        (other.and_then(|other| other.join().ok()).unwrap_or_else(beside), done)
    });
    let done = done.and_then(|()| told(second.into_iter(), half, each));
    match (unlinked, done) {
        (Some(record), Err((earlier, fault))) if earlier < record => Err((earlier, fault)),
        (Some(record), _) => Err((record, Fault::Chain)),
        (None, done) => done,
    }
}

fn told(
    entries: impl Iterator<Item = Result<(Entry, Digest), Fault>>,
    from: u64,
    each: Each<'_>,
) -> Result<(), (u64, Fault)> {
    for (number, entry) in (from..).zip(entries) {
        entry.and_then(|(entry, chain)| each(number, entry, chain)).map_err(|fault| (number, fault))?;
    }
    Ok(())
}

/// The first record of a page that does not go on from the one before.
fn unlinked(page: &[Vec<u8>], after: Digest, from: u64) -> Option<u64> {
    let mut after = after;
    for (number, record) in (from..).zip(page) {
        if !follows(record, &after) {
            return Some(number);
        }
        after = chain(record)?;
    }
    None
}
