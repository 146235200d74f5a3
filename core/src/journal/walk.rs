//! A log from its beginning, in pages, each record checked against the one before.

use std::{
    future::Future as _,
    panic::resume_unwind,
    pin::pin,
    sync::{Mutex, PoisonError},
    task::{Context, Poll, Waker},
    thread,
};

use super::{Entry, Fault, JournalError, beginning, chain, follows, read};
use crate::{Digest, EpisodeId, store::AsyncStore};

/// How many records are read at once: commits, so some thousands of spans.
pub(crate) const PAGE: u64 = 256;

/// From how many bytes on a page is worth a second thread.
const LARGE: usize = 64 << 10;

/// Walks an episode's log; gives the number of its records. While `each` goes through a page on a second thread, this one
/// reads the next page, where the store answers at once, and checks digests: so `each` may see an entry whose page is refused,
/// and what it made of that is not to be used.
pub(crate) async fn walk<S: AsyncStore>(
    store: &S,
    episode: &EpisodeId,
    mut each: impl FnMut(u64, Entry<'_>, Digest) -> Result<(), Fault> + Send,
) -> Result<u64, JournalError> {
    let (mut number, mut after) = (0_u64, beginning(episode));
    let mut page = store.read(episode, number, PAGE).await?;
    loop {
        let Some(last) = page.last() else { return Ok(number) };
        let end = number.saturating_add(u64::try_from(page.len()).unwrap_or(u64::MAX));
        let mut next = pin!(store.read(episode, end, PAGE));
        let told = || {
            let tell = |(number, record): (u64, &Vec<u8>)| {
                read(record).and_then(|(entry, chain)| each(number, entry, chain)).map_err(|fault| (number, fault))
            };
            (number..).zip(&page).try_for_each(tell)
        };
        let (polled, done) = beside(&page, told, || {
            let polled = next.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            (polled, unlinked(&page, after, number))
        });
        done.map_err(|(record, fault)| JournalError::Record { episode: episode.clone(), record, fault })?;
        (number, after) = (end, chain(last).unwrap_or(after));
        page = match polled {
            Poll::Ready(page) => page?,
            Poll::Pending => next.await?,
        };
    }
}

/// The number of a record, and what is wrong with it.
type Found = (u64, Fault);

/// What is told of a page, on a second thread where it is large, and what is done beside; of the faults the first.
fn beside<T>(
    page: &[Vec<u8>],
    told: impl FnOnce() -> Result<(), Found> + Send,
    rest: impl FnOnce() -> (T, Option<u64>),
) -> (T, Result<(), Found>) {
    let slot = Mutex::new(Some(told));
    // Whichever thread comes first: there may be none to have.
    let told = || slot.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), |told| told());
    let large = page.iter().map(Vec::len).sum::<usize>() > LARGE && !cfg!(target_family = "wasm");
    let ((other, unlinked), done) = thread::scope(|scope| {
        let second = large.then(|| thread::Builder::new().spawn_scoped(scope, told).ok()).flatten();
        let rest = rest();
        (rest, second.map_or_else(told, |second| second.join().unwrap_or_else(|panic| resume_unwind(panic))))
    });
    let done = match (unlinked, done) {
        (Some(record), Err((earlier, fault))) if earlier < record => Err((earlier, fault)),
        (Some(record), _) => Err((record, Fault::Chain)),
        (None, done) => done,
    };
    (other, done)
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
