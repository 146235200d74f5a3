//! The store contract as a suite that any backend can run.
//!
//! ```
//! use keepspan::store::{MemoryStore, conformance};
//!
//! conformance::check(MemoryStore::new)?;
//! # Ok::<(), conformance::Failure>(())
//! ```
//!
//! Durability is not in it: that takes ending the process in the middle of a commit.

use std::{
    fmt::Display,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
    thread,
};

use super::{AsyncStore, Batch, Blob, Claim, Store, StoreError};
use crate::{Digest, EpisodeId};

/// The clause of the contract that a store broke, and what it did instead.
#[derive(Debug, thiserror::Error)]
#[error("the store breaks the clause `{clause}`: {found}")]
pub struct Failure {
    clause: &'static str,
    found: String,
    source: Option<StoreError>,
}

impl Failure {
    /// The clause, in words.
    pub const fn clause(&self) -> &'static str {
        self.clause
    }

    /// What the store did instead.
    pub fn found(&self) -> &str {
        &self.found
    }
}

/// Checks a store that answers at once, claims from 16 threads included.
///
/// Each call of `open` must give an empty store.
///
/// # Errors
/// [`Failure`] for the first clause the store breaks.
pub fn check<S: Store>(open: impl Fn() -> S) -> Result<(), Failure> {
    at_once(check_async(&open))?;
    claims_from_threads(&open())
}

/// Checks a store that answers later; needs no runtime of its own, only what the store needs.
///
/// Each call of `open` must give an empty store.
///
/// # Errors
/// [`Failure`] for the first clause the store breaks.
pub async fn check_async<S: AsyncStore>(open: impl Fn() -> S) -> Result<(), Failure> {
    records_append(&open()).await?;
    reads_are_pages(&open()).await?;
    blobs_round_trip(&open()).await?;
    blobs_are_put_once(&open()).await?;
    reads_keep_their_order(&open()).await?;
    missing_is_named(&open()).await?;
    length_is_conditional(&open()).await?;
    refused_leaves_nothing(&open()).await?;
    one_writer_wins(&open()).await?;
    seals_are_for_good(&open()).await?;
    seals_are_atomic(&open()).await?;
    episodes_are_apart(&open()).await?;
    claims_are_once_only(&open()).await?;
    claims_race(&open()).await?;
    small_commits_add_up(&open()).await
}

/// One clause, named in every failure of it.
#[derive(Clone, Copy)]
struct Clause(&'static str);

impl Clause {
    fn fail(self, found: impl Into<String>, source: Option<StoreError>) -> Failure {
        Failure { clause: self.0, found: found.into(), source }
    }

    fn ok<T>(self, call: &str, result: Result<T, StoreError>) -> Result<T, Failure> {
        result.map_err(|error| self.fail(format!("{call} failed: {error}"), Some(error)))
    }

    fn holds(self, holds: bool, found: impl Display) -> Result<(), Failure> {
        if holds { Ok(()) } else { Err(self.fail(found.to_string(), None)) }
    }

    async fn commit<S: AsyncStore>(self, store: &S, batch: Batch) -> Result<(), Failure> {
        self.ok("commit", store.commit(&batch).await)
    }

    async fn has_log<S: AsyncStore>(self, store: &S, episode: &EpisodeId, log: &[Vec<u8>]) -> Result<(), Failure> {
        let length = self.ok("length", store.length(episode).await)?;
        self.holds(length == number(log.len()), format_args!("length is {length} after {} records", log.len()))?;
        let found = self.ok("read", store.read(episode, 0, u64::MAX).await)?;
        self.holds(found == log, format_args!("read from 0 gave {} records, or others than were put", found.len()))
    }

    async fn has_blob<S: AsyncStore>(self, store: &S, blob: &Blob) -> Result<(), Failure> {
        let size = blob.bytes().len();
        let found = self.ok("get_many", store.get_many(&[*blob.digest()]).await)?;
        self.holds(found.len() == 1, format_args!("get_many of 1 digest gave {} blobs", found.len()))?;
        let same = found.first().is_some_and(|bytes| bytes == blob.bytes());
        self.holds(same, format_args!("a blob of {size} bytes came back with other bytes"))
    }

    async fn lacks_blob<S: AsyncStore>(self, store: &S, present: &[Digest], digest: Digest) -> Result<(), Failure> {
        let asked = [present, &[digest]].concat();
        match store.get_many(&asked).await {
            Err(StoreError::Missing { digest: named }) if named == digest => Ok(()),
            Err(error) => {
                Err(self.fail(format!("`Missing` with the digest was due, and it was: {error}"), Some(error)))
            }
            Ok(found) => Err(self.fail(format!("a digest that was never put gave {} blobs", found.len()), None)),
        }
    }

    /// Each of `signatures` has the holder at its place in `holders`, or none.
    async fn is_held<S: AsyncStore>(
        self,
        store: &S,
        signatures: &[Digest],
        holders: &[Option<&[u8]>],
    ) -> Result<(), Failure> {
        let found = self.ok("holders", store.holders(signatures).await)?;
        let found: Vec<_> = found.iter().map(Option::as_deref).collect();
        self.holds(found == holders, format_args!("holders gave {found:?} where {holders:?} was due"))
    }

    /// A commit was told that `signature` is held by `holder`.
    fn is_refused(self, commit: Result<(), StoreError>, signature: Digest, holder: &[u8]) -> Result<(), Failure> {
        match commit {
            Err(StoreError::Claimed { signature: named, holder: told }) if named == signature && told == holder => {
                Ok(())
            }
            Err(error) => {
                Err(self.fail(format!("`Claimed` with the holder was due, and it was: {error:?}"), Some(error)))
            }
            Ok(()) => Err(self.fail("a signature was claimed twice", None)),
        }
    }

    /// Each of `digests` is sealed, asked alone or after `present`.
    async fn is_sealed<S: AsyncStore>(self, store: &S, present: &[Digest], digests: &[Digest]) -> Result<(), Failure> {
        for digest in digests {
            for asked in [vec![*digest], [present, &[*digest]].concat()] {
                match store.get_many(&asked).await {
                    Err(StoreError::Sealed { digest: named }) if named == *digest => {}
                    Err(error) => {
                        return Err(
                            self.fail(format!("`Sealed` with the digest was due, and it was: {error}"), Some(error))
                        );
                    }
                    Ok(_) => return Err(self.fail("a sealed blob was read", None)),
                }
            }
        }
        Ok(())
    }

    async fn conflicts<S: AsyncStore>(self, store: &S, batch: &Batch, found: u64) -> Result<(), Failure> {
        let due = format!("`Conflict` with {} expected and {found} found was due", batch.expected());
        match store.commit(batch).await {
            Err(StoreError::Conflict { episode, expected, found: told })
                if episode == *batch.episode() && expected == batch.expected() && told == found =>
            {
                Ok(())
            }
            Err(error) => Err(self.fail(format!("{due}, and it was: {error}"), Some(error))),
            Ok(()) => Err(self.fail(format!("{due}, and the batch was taken"), None)),
        }
    }
}

async fn records_append<S: AsyncStore>(store: &S) -> Result<(), Failure> {
    let clause = Clause("records are appended in order and read from any number on");
    let episode = EpisodeId::new("log");
    clause.has_log(store, &episode, &[]).await?;
    let log: Vec<Vec<u8>> = [&b"one"[..], b"", b"\x00\xff", &[7; 9_000], b"five"].map(<[u8]>::to_vec).into();
    let (first, second) = log.split_at(2);
    clause.commit(store, Batch::new(episode.clone(), 0, vec![], first.to_vec())).await?;
    clause.commit(store, Batch::new(episode.clone(), 2, vec![], second.to_vec())).await?;
    clause.has_log(store, &episode, &log).await?;
    for from in [1, 2, 4, 5, 6, 1 << 40, u64::MAX] {
        let found = clause.ok("read", store.read(&episode, from, u64::MAX).await)?;
        let due = usize::try_from(from).ok().and_then(|from| log.get(from..)).unwrap_or_default();
        clause.holds(found == due, format_args!("read from {from} gave {} records of {}", found.len(), due.len()))?;
    }
    clause.commit(store, Batch::new(episode.clone(), 5, vec![], vec![])).await?;
    clause.has_log(store, &episode, &log).await
}

async fn reads_are_pages<S: AsyncStore>(store: &S) -> Result<(), Failure> {
    let clause = Clause("a read gives at most as many records as asked, and pages join to the whole log");
    let (episode, other) = (EpisodeId::new("pages"), EpisodeId::new("pages2"));
    let log: Vec<Vec<u8>> = (0..100_u8).map(|n| vec![n; 300]).collect();
    clause.commit(store, Batch::new(other, 0, vec![], vec![vec![255]])).await?;
    clause.commit(store, Batch::new(episode.clone(), 0, vec![], log.clone())).await?;
    for most in [1_usize, 7, 99, 100, 101] {
        for (number, due) in log.chunks(most).enumerate() {
            let from = number.saturating_mul(most);
            let found = clause.ok("read", store.read(&episode, self::number(from), self::number(most)).await)?;
            clause.holds(
                found == due,
                format_args!("read of {most} from {from} gave {} records of {}", found.len(), due.len()),
            )?;
        }
    }
    for (from, most) in [(0, 0), (50, 0), (100, 1), (100, u64::MAX), (u64::MAX, u64::MAX)] {
        let found = clause.ok("read", store.read(&episode, from, most).await)?;
        clause.holds(found.is_empty(), format_args!("read of {most} from {from} gave {} records", found.len()))?;
    }
    Ok(())
}

async fn blobs_round_trip<S: AsyncStore>(store: &S) -> Result<(), Failure> {
    let clause = Clause("a blob comes back whole, whatever its size");
    let sizes = [0, 1, 500, 4_095, 4_096, 4_097, 65_535, 65_536, 65_539, 200_000, 5 << 20];
    let blobs: Vec<Blob> = (0_u64..).zip(sizes).map(|(seed, size)| noise(seed, size)).collect();
    let (alone, together) = blobs.split_at(6);
    let episode = EpisodeId::new("sizes");
    for (at, blob) in (0..).zip(alone) {
        clause.commit(store, Batch::new(episode.clone(), at, vec![blob.clone()], vec![vec![1]])).await?;
    }
    clause.commit(store, Batch::new(episode, 6, together.to_vec(), vec![vec![2]])).await?;
    for blob in &blobs {
        clause.has_blob(store, blob).await?;
    }
    Ok(())
}

async fn blobs_are_put_once<S: AsyncStore>(store: &S) -> Result<(), Failure> {
    let clause = Clause("a blob that is there already is accepted and kept as it is");
    let (blob, large) = (noise(1, 4_096), noise(2, 65_539));
    let twice = vec![blob.clone(), large.clone(), blob.clone(), large.clone()];
    let (one, two) = (EpisodeId::new("one"), EpisodeId::new("two"));
    clause.commit(store, Batch::new(one.clone(), 0, twice, vec![vec![1]])).await?;
    let again = vec![large.clone(), noise(3, 70_000), blob.clone()];
    clause.commit(store, Batch::new(one.clone(), 1, again.clone(), vec![vec![2]])).await?;
    clause.commit(store, Batch::new(two.clone(), 0, again, vec![])).await?;
    for blob in [&blob, &large, &noise(3, 70_000)] {
        clause.has_blob(store, blob).await?;
    }
    clause.has_log(store, &one, &[vec![1], vec![2]]).await?;
    clause.has_log(store, &two, &[]).await
}

async fn reads_keep_their_order<S: AsyncStore>(store: &S) -> Result<(), Failure> {
    let clause = Clause("get_many answers each digest, in the order asked");
    let blobs: Vec<Blob> = (0..20).map(|seed| noise(seed, 300)).collect();
    clause.commit(store, Batch::new(EpisodeId::new("order"), 0, blobs.clone(), vec![])).await?;
    let asked: Vec<&Blob> = blobs.iter().rev().chain(blobs.iter().step_by(3)).collect();
    let digests: Vec<Digest> = asked.iter().map(|blob| *blob.digest()).collect();
    let found = clause.ok("get_many", store.get_many(&digests).await)?;
    let same = found.iter().map(Vec::as_slice).eq(asked.iter().map(|blob| blob.bytes()));
    clause.holds(same, "the blobs came in another order, or not one for each digest")?;
    let none = clause.ok("get_many", store.get_many(&[]).await)?;
    clause.holds(none.is_empty(), "get_many of no digest gave blobs")
}

async fn missing_is_named<S: AsyncStore>(store: &S) -> Result<(), Failure> {
    let clause = Clause("a digest that was never put is `Missing`");
    let (there, absent) = (noise(1, 100), Digest::of(b"never put"));
    clause.lacks_blob(store, &[], absent).await?;
    clause.commit(store, Batch::new(EpisodeId::new("e"), 0, vec![there.clone()], vec![])).await?;
    clause.lacks_blob(store, &[*there.digest()], absent).await
}

async fn length_is_conditional<S: AsyncStore>(store: &S) -> Result<(), Failure> {
    let clause = Clause("a commit for another length than the log has is refused, with both lengths");
    let episode = EpisodeId::new("conditional");
    let batch = |expected| Batch::new(episode.clone(), expected, vec![], vec![vec![9]]);
    clause.conflicts(store, &batch(1), 0).await?;
    clause.commit(store, Batch::new(episode.clone(), 0, vec![], vec![vec![1], vec![2], vec![3]])).await?;
    for expected in [0, 2, 4, u64::MAX] {
        clause.conflicts(store, &batch(expected), 3).await?;
    }
    clause.conflicts(store, &Batch::new(episode.clone(), 2, vec![], vec![]), 3).await?;
    clause.commit(store, batch(3)).await?;
    clause.has_log(store, &episode, &[vec![1], vec![2], vec![3], vec![9]]).await
}

async fn refused_leaves_nothing<S: AsyncStore>(store: &S) -> Result<(), Failure> {
    let clause = Clause("nothing of a refused batch is visible");
    let (episode, kept) = (EpisodeId::new("atomic"), noise(1, 5_000));
    clause.commit(store, Batch::new(episode.clone(), 0, vec![kept.clone()], vec![vec![1]])).await?;
    let refused = [noise(2, 10), noise(3, 4_096), noise(4, 200_000)];
    let blobs = [std::slice::from_ref(&kept), &refused].concat();
    let batch = Batch::new(episode.clone(), 0, blobs.clone(), vec![vec![2], vec![3]]);
    clause.conflicts(store, &batch, 1).await?;
    clause.has_log(store, &episode, &[vec![1]]).await?;
    clause.has_blob(store, &kept).await?;
    for blob in &refused {
        clause.lacks_blob(store, &[], *blob.digest()).await?;
    }
    clause.commit(store, Batch::new(episode.clone(), 1, blobs.clone(), vec![vec![2], vec![3]])).await?;
    for blob in &blobs {
        clause.has_blob(store, blob).await?;
    }
    clause.has_log(store, &episode, &[vec![1], vec![2], vec![3]]).await
}

async fn one_writer_wins<S: AsyncStore>(store: &S) -> Result<(), Failure> {
    let clause = Clause("of many commits for one length, one is taken");
    let episode = EpisodeId::new("race");
    let batches: Vec<Batch> = (0..16).map(|seed| Batch::new(episode.clone(), 0, vec![], vec![vec![seed]])).collect();
    let results = all(batches.iter().map(|batch| store.commit(batch)).collect()).await;
    let mut won = Vec::new();
    for (batch, result) in batches.iter().zip(results) {
        match result {
            Ok(()) => won.push(batch.records().to_vec()),
            Err(StoreError::Conflict { expected: 0, found: 1, .. }) => {}
            Err(error) => return Err(clause.fail(format!("a commit failed otherwise: {error}"), Some(error))),
        }
    }
    clause.holds(won.len() == 1, format_args!("{} commits of 16 were taken", won.len()))?;
    clause.has_log(store, &episode, &won.concat()).await
}

async fn seals_are_for_good<S: AsyncStore>(store: &S) -> Result<(), Failure> {
    let clause = Clause("a sealed blob is `Sealed` from then on, whether it was there, was not, or is put again");
    let (episode, other) = (EpisodeId::new("seals"), EpisodeId::new("late"));
    let blobs: Vec<Blob> = (0..).zip([0, 100, 4_096, 5_000, 300_000]).map(|(seed, size)| noise(seed, size)).collect();
    let kept: Vec<Blob> = (10..).zip([100, 5_000, 300_000]).map(|(seed, size)| noise(seed, size)).collect();
    let (never, same) = (noise(20, 200), noise(21, 70_000));
    let present: Vec<Digest> = kept.iter().map(|blob| *blob.digest()).collect();
    let put = [blobs.as_slice(), &kept].concat();
    clause.commit(store, Batch::new(episode.clone(), 0, put.clone(), vec![vec![1]])).await?;
    let sealed: Vec<Digest> = blobs.iter().chain([&never, &same]).map(|blob| *blob.digest()).collect();
    // Beside the seals it puts what is sealed, what is there and what is new.
    let beside = noise(22, 9_000);
    let put_too = [kept.as_slice(), &[same.clone(), beside.clone()]].concat();
    let reason = Batch::new(episode.clone(), 1, put_too, vec![vec![2]]).sealing(sealed.clone());
    clause.commit(store, reason).await?;
    clause.is_sealed(store, &present, &sealed).await?;
    let late = [put.as_slice(), &[never, same]].concat();
    clause.commit(store, Batch::new(other.clone(), 0, late, vec![vec![3]])).await?;
    clause.commit(store, Batch::new(other.clone(), 1, vec![], vec![]).sealing(sealed.clone())).await?;
    clause.is_sealed(store, &present, &sealed).await?;
    for blob in kept.iter().chain([&beside]) {
        clause.has_blob(store, blob).await?;
    }
    clause.has_log(store, &episode, &[vec![1], vec![2]]).await?;
    clause.has_log(store, &other, &[vec![3]]).await
}

async fn seals_are_atomic<S: AsyncStore>(store: &S) -> Result<(), Failure> {
    let clause = Clause("a refused batch seals nothing");
    let (episode, there, absent) = (EpisodeId::new("refused"), noise(1, 9_000), noise(2, 100));
    let seals = vec![*there.digest(), *absent.digest()];
    clause.commit(store, Batch::new(episode.clone(), 0, vec![there.clone()], vec![vec![1]])).await?;
    for expected in [0, 2] {
        let refused = Batch::new(episode.clone(), expected, vec![], vec![vec![2]]).sealing(seals.clone());
        clause.conflicts(store, &refused, 1).await?;
    }
    clause.has_blob(store, &there).await?;
    clause.lacks_blob(store, &[], *absent.digest()).await?;
    clause.commit(store, Batch::new(episode.clone(), 1, vec![absent.clone()], vec![])).await?;
    clause.has_blob(store, &absent).await?;
    clause.has_log(store, &episode, &[vec![1]]).await
}

async fn episodes_are_apart<S: AsyncStore>(store: &S) -> Result<(), Failure> {
    let clause = Clause("each episode has a log of its own, whatever its name");
    let long = "n".repeat(EpisodeId::MAX_BYTES);
    let odd = "a|ab|abc|a/b|a\0|a\0b|\0|\u{1}| |a |A|ä|a\u{308}|日本|\u{10ffff}|..|../a|\
               a'b\"; --|%00|a\nb|a:1|a:11|0|00|*|{a}";
    let names: Vec<&str> = odd.split('|').chain([long.as_str()]).collect();
    let log = |name: &str| -> Vec<Vec<u8>> { (0..=name.len().min(9)).map(|n| format!("{name} {n}").into()).collect() };
    for name in &names {
        let first = log(name).into_iter().take(1).collect();
        clause.commit(store, Batch::new(EpisodeId::new(*name), 0, vec![], first)).await?;
    }
    for name in names.iter().rev() {
        let rest = log(name).into_iter().skip(1).collect();
        clause.commit(store, Batch::new(EpisodeId::new(*name), 1, vec![], rest)).await?;
    }
    for name in &names {
        clause.has_log(store, &EpisodeId::new(*name), &log(name)).await?;
    }
    for name in ["abcd", "a\0b\0", "nn", "aa"] {
        clause.has_log(store, &EpisodeId::new(name), &[]).await?;
    }
    Ok(())
}

async fn claims_are_once_only<S: AsyncStore>(store: &S) -> Result<(), Failure> {
    let clause = Clause("a signature is claimed once, and later commits are told by whom");
    let long = noise(4, 70_000);
    for (seed, holder) in (0_u8..).zip([&b"first"[..], b"", b"\x00\xff", long.bytes()]) {
        let signature = Digest::from_bytes([seed; 32]);
        let episode = EpisodeId::new(format!("claims {seed}"));
        let claiming = |expected, holder: &[u8], blobs| {
            let claim = Claim { signature, holder: holder.to_vec() };
            Batch::new(episode.clone(), expected, blobs, vec![vec![seed]]).claiming(vec![claim])
        };
        clause.is_held(store, &[signature], &[None]).await?;
        clause.commit(store, claiming(0, holder, vec![])).await?;
        for later in [&b"second"[..], holder] {
            let blob = noise(u64::from(seed), 300);
            clause.is_refused(store.commit(&claiming(1, later, vec![blob.clone()])).await, signature, holder)?;
            clause.lacks_blob(store, &[], *blob.digest()).await?;
            clause.has_log(store, &episode, &[vec![seed]]).await?;
        }
        // Another owner of the episode is told that first, and claims nothing.
        clause.conflicts(store, &claiming(0, b"late", vec![]), 1).await?;
        let free = Digest::from_bytes([seed.wrapping_add(100); 32]);
        let late = Claim { signature: free, holder: vec![] };
        let late = Batch::new(episode.clone(), 0, vec![], vec![vec![seed]]).claiming(vec![late]);
        clause.conflicts(store, &late, 1).await?;
        clause.is_held(store, &[free, signature, free], &[None, Some(holder), None]).await?;
    }
    let both = [7, 0].map(|seed| Claim { signature: Digest::from_bytes([seed; 32]), holder: vec![seed] });
    let batch = Batch::new(EpisodeId::new("both"), 0, vec![], vec![vec![1]]).claiming(both.to_vec());
    clause.is_refused(store.commit(&batch).await, Digest::from_bytes([0; 32]), b"first")?;
    clause.is_held(store, &[Digest::from_bytes([7; 32])], &[None]).await?;
    // Two holders in one commit are one too many, in whatever order.
    let signature = Digest::from_bytes([8; 32]);
    for holders in [[&b"a"[..], b"b"], [b"b", b"a"], [b"a", b"a"]] {
        let claims = holders.map(|holder| Claim { signature, holder: holder.to_vec() }).to_vec();
        let twice =
            |expected| Batch::new(EpisodeId::new("twice"), expected, vec![], vec![vec![1]]).claiming(claims.clone());
        clause.is_refused(store.commit(&twice(0)).await, signature, holders[0])?;
        clause.conflicts(store, &twice(1), 0).await?;
    }
    clause.is_held(store, &[signature], &[None]).await
}

const RACE: &str = "of many claims at once, one takes the signature and the others are told by whom";

/// The claim of racer `racer`, with a record in a log of its own.
fn racing(round: u8, racer: u8) -> Batch {
    let claim = Claim { signature: Digest::from_bytes([round; 32]), holder: vec![racer] };
    Batch::new(EpisodeId::new(format!("race {round} {racer}")), 0, vec![], vec![vec![racer]]).claiming(vec![claim])
}

async fn claims_race<S: AsyncStore>(store: &S) -> Result<(), Failure> {
    for round in 0..8 {
        let batches: Vec<_> = (0..16).map(|racer| racing(round, racer)).collect();
        let claims = all(batches.iter().map(|batch| store.commit(batch)).collect()).await;
        one_taken(store, round, claims).await?;
    }
    Ok(())
}

fn claims_from_threads<S: Store>(store: &S) -> Result<(), Failure> {
    for round in 0..8 {
        let claims = thread::scope(|scope| {
            let threads: Vec<_> =
                (0..16_u8).map(|racer| scope.spawn(move || Store::commit(store, &racing(round, racer)))).collect();
            threads.into_iter().map(thread::ScopedJoinHandle::join).collect::<Result<Vec<_>, _>>()
        });
        let claims = claims.map_err(|_| Clause(RACE).fail("a claim panicked", None))?;
        at_once(one_taken(store, round, claims))?;
    }
    Ok(())
}

/// One racer has the claim and its record, and the others have neither.
async fn one_taken<S: AsyncStore>(store: &S, round: u8, claims: Vec<Result<(), StoreError>>) -> Result<(), Failure> {
    let clause = Clause(RACE);
    let signature = Digest::from_bytes([round; 32]);
    let takers: Vec<u8> = (0..).zip(&claims).filter(|(_, claim)| claim.is_ok()).map(|(racer, _)| racer).collect();
    clause.holds(takers.len() == 1, format_args!("{} claims of {} took it", takers.len(), claims.len()))?;
    for (racer, claim) in (0..).zip(claims) {
        let log = if claim.is_ok() { vec![vec![racer]] } else { vec![] };
        if claim.is_err() {
            clause.is_refused(claim, signature, &takers)?;
        }
        clause.has_log(store, racing(round, racer).episode(), &log).await?;
    }
    clause.is_held(store, &[signature], &[Some(&takers)]).await
}

async fn small_commits_add_up<S: AsyncStore>(store: &S) -> Result<(), Failure> {
    let clause = Clause("1,000 small commits are all there");
    let episode = EpisodeId::new("many");
    let blobs: Vec<Blob> = (0..1_000).map(|seed| noise(seed, 64)).collect();
    let log: Vec<Vec<u8>> = blobs.iter().map(|blob| blob.digest().to_string().into()).collect();
    for ((at, blob), record) in (0..).zip(&blobs).zip(&log) {
        clause.commit(store, Batch::new(episode.clone(), at, vec![blob.clone()], vec![record.clone()])).await?;
    }
    clause.has_log(store, &episode, &log).await?;
    let digests: Vec<Digest> = blobs.iter().map(|blob| *blob.digest()).collect();
    let found = clause.ok("get_many", store.get_many(&digests).await)?;
    let same = found.iter().map(Vec::as_slice).eq(blobs.iter().map(Blob::bytes));
    clause.holds(same, "get_many of all blobs gave others")
}

/// `size` bytes that no two seeds share and that do not compress (xorshift).
fn noise(seed: u64, size: usize) -> Blob {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = seed.to_le_bytes().to_vec();
    while bytes.len() < size {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(size);
    Blob::new(bytes)
}

fn number(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// Polls all futures together, so that a store with a server has their requests in flight at once.
async fn all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut waiting: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    let mut done: Vec<Option<F::Output>> = waiting.iter().map(|_| None).collect();
    poll_fn(move |context| {
        for (future, slot) in waiting.iter_mut().zip(&mut done) {
            if slot.is_none()
                && let Poll::Ready(output) = future.as_mut().poll(context)
            {
                *slot = Some(output);
            }
        }
        if done.iter().all(Option::is_some) {
            Poll::Ready(done.iter_mut().filter_map(Option::take).collect())
        } else {
            Poll::Pending
        }
    })
    .await
}

/// Drives a future whose every step is ready, as those of a [`Store`] are.
fn at_once<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return output;
        }
        thread::yield_now();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::HashMap;

    use super::{super::MemoryStore, *};

    /// A sound store with one flaw.
    struct Flawed(MemoryStore, &'static str);

    impl Flawed {
        fn has(&self, flaw: &str) -> bool {
            self.1 == flaw
        }

        fn alias(&self, episode: &EpisodeId) -> EpisodeId {
            if self.has("trims names") { EpisodeId::new(episode.as_str().trim_end()) } else { episode.clone() }
        }
    }

    impl Store for Flawed {
        fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
            let episode = self.alias(batch.episode());
            let length = Store::length(&self.0, &episode)?;
            if self.has("blobs first") {
                Store::commit(&self.0, &Batch::new(episode.clone(), length, batch.blobs().to_vec(), vec![]))?;
            }
            let mut seals = batch.seals().to_vec();
            if self.has("seals first") {
                Store::commit(&self.0, &Batch::new(episode.clone(), length, vec![], vec![]).sealing(seals.clone()))?;
            }
            if self.has("seals what it has") {
                seals.retain(|digest| self.0.get(digest).is_ok());
            }
            if self.has("seals what it puts") && !seals.is_empty() {
                seals.extend(batch.blobs().iter().map(|blob| *blob.digest()));
            }
            if self.has("seals nothing") {
                seals.clear();
            }
            let expected = if self.has("unconditional") { length } else { batch.expected() };
            let records = if self.has("loses records") { vec![] } else { batch.records().to_vec() };
            let mut claims = batch.claims().to_vec();
            if self.has("claims first") {
                let claims = std::mem::take(&mut claims);
                Store::commit(&self.0, &Batch::new(episode.clone(), length, vec![], vec![]).claiming(claims))?;
            }
            if self.has("takes the last of two holders") {
                let last: HashMap<_, _> = claims.drain(..).map(|claim| (claim.signature, claim)).collect();
                claims = last.into_values().collect();
            }
            if self.has("claims twice") {
                claims.retain(|claim| Store::holders(&self.0, &[claim.signature]).is_ok_and(|held| held == [None]));
            }
            let batch = Batch::new(episode, expected, batch.blobs().to_vec(), records).sealing(seals).claiming(claims);
            match Store::commit(&self.0, &batch) {
                Err(StoreError::Claimed { signature, .. }) if self.has("names nobody") => {
                    Err(StoreError::Claimed { signature, holder: Vec::new() })
                }
                answer => answer,
            }
        }

        fn get(&self, digest: &Digest) -> Result<Vec<u8>, StoreError> {
            match self.0.get(digest) {
                Err(_) if self.has("never missing") => Ok(Vec::new()),
                Err(_) if self.has("calls a seal missing") => Err(StoreError::Missing { digest: *digest }),
                Ok(bytes) if self.has("cuts at 64 KB") => Ok(bytes.into_iter().take(1 << 16).collect()),
                other => other,
            }
        }

        fn get_many(&self, digests: &[Digest]) -> Result<Vec<Vec<u8>>, StoreError> {
            let mut found = digests.iter().map(|digest| self.get(digest)).collect::<Result<Vec<_>, _>>()?;
            if self.has("sorts") {
                found.sort();
            }
            Ok(found)
        }

        fn read(&self, episode: &EpisodeId, from: u64, most: u64) -> Result<Vec<Vec<u8>>, StoreError> {
            let from = if self.has("reads from 0") { 0 } else { from };
            let most = if self.has("reads to the end") { u64::MAX } else { most };
            Store::read(&self.0, &self.alias(episode), from, most)
        }

        fn length(&self, episode: &EpisodeId) -> Result<u64, StoreError> {
            Store::length(&self.0, &self.alias(episode))
        }

        fn holders(&self, signatures: &[Digest]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
            let mut holders = Store::holders(&self.0, signatures)?;
            if self.has("forgets holders") {
                holders.fill(None);
            }
            if self.has("cuts holders") {
                holders.iter_mut().flatten().for_each(|holder| holder.truncate(1 << 16));
            }
            Ok(holders)
        }
    }

    #[test]
    fn flaws_are_found_and_named() {
        check(|| Flawed(MemoryStore::new(), "none")).unwrap();
        let flaws = [
            ("trims names", "each episode"),
            ("blobs first", "nothing of a refused batch"),
            ("unconditional", "a commit for another length"),
            ("loses records", "records are appended"),
            ("never missing", "a digest that was never put"),
            ("cuts at 64 KB", "a blob comes back whole"),
            ("sorts", "get_many answers"),
            ("reads from 0", "records are appended"),
            ("reads to the end", "a read gives"),
            ("seals nothing", "a sealed blob"),
            ("seals what it has", "a sealed blob"),
            ("seals what it puts", "a sealed blob"),
            ("calls a seal missing", "a sealed blob"),
            ("seals first", "a refused batch seals nothing"),
            ("claims twice", "a signature is claimed once"),
            ("takes the last of two holders", "a signature is claimed once"),
            ("claims first", "a signature is claimed once"),
            ("names nobody", "a signature is claimed once"),
            ("forgets holders", "a signature is claimed once"),
            ("cuts holders", "a signature is claimed once"),
        ];
        for (flaw, clause) in flaws {
            let failure = check(|| Flawed(MemoryStore::new(), flaw)).unwrap_err();
            assert!(failure.clause().starts_with(clause), "{flaw}: {failure}");
        }
    }
}
