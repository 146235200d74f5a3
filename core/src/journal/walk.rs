//! A log from its beginning, in pages, each record checked against the one before.

use std::thread;

use super::{Entry, Fault, JournalError, beginning, chain, follows, read};
use crate::{Digest, EpisodeId, store::AsyncStore};

/// How many records are read at once: commits, so some thousands of spans.
pub(crate) const PAGE: u64 = 256;

/// From how many bytes on a page is worth a second thread.
const LARGE: usize = 64 << 10;

/// Walks an episode's log; gives the number of its records. The digests of a page are checked while it is read, on a second
/// thread, so `each` may see an entry whose page is refused: what it made of that is not to be used.
pub(crate) async fn walk<S: AsyncStore>(
    store: &S,
    episode: &EpisodeId,
    mut each: impl FnMut(u64, Entry<'_>, Digest) -> Result<(), Fault>,
) -> Result<u64, JournalError> {
    let (mut number, mut after) = (0_u64, beginning(episode));
    loop {
        let page = store.read(episode, number, PAGE).await?;
        let Some(last) = page.last() else { return Ok(number) };
        let told = || {
            let tell = |(number, record): (u64, &Vec<u8>)| {
                read(record).and_then(|(entry, chain)| each(number, entry, chain)).map_err(|fault| (number, fault))
            };
            (number..).zip(&page).try_for_each(tell)
        };
        let done = beside(&page, || unlinked(&page, after, number), told);
        done.map_err(|(record, fault)| JournalError::Record { episode: episode.clone(), record, fault })?;
        number = number.saturating_add(u64::try_from(page.len()).unwrap_or(u64::MAX));
        after = chain(last).unwrap_or(after);
    }
}

/// Hashing a page takes as long as reading it does, so a large one is hashed on a second thread. Gives the first fault of both,
/// with the number of its record.
fn beside(
    page: &[Vec<u8>],
    unlinked: impl Fn() -> Option<u64> + Sync,
    told: impl FnOnce() -> Result<(), (u64, Fault)>,
) -> Result<(), (u64, Fault)> {
    let (unlinked, done) = thread::scope(|scope| {
        let large = page.iter().map(Vec::len).sum::<usize>() > LARGE;
        let other = large.then(|| thread::Builder::new().spawn_scoped(scope, &unlinked).ok()).flatten();
        let done = told();
        (other.and_then(|other| other.join().ok()).unwrap_or_else(&unlinked), done)
    });
    match (unlinked, done) {
        (Some(record), Err((earlier, fault))) if earlier < record => Err((earlier, fault)),
        (Some(record), _) => Err((record, Fault::Chain)),
        (None, done) => done,
    }
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
