//! What the store knows of a request: its attempts, each an intent and, once it is known, an ending. Both are claims, so
//! that of many who attempt the same one does, and whoever asks finds it in one look-up, whatever window it was.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::Signature;
use crate::{
    Digest, EpisodeId, SpanId,
    store::{AsyncStore, Claim, StoreError},
};

/// The version of what is claimed, the first byte of each.
const VERSION: u8 = 1;

/// Who began an attempt, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Intent {
    pub(crate) episode: EpisodeId,
    /// The record of that episode's log that says so.
    pub(crate) record: u64,
    /// Milliseconds since 1970.
    pub(crate) time: u64,
    pub(crate) action: String,
    /// Why it was attempted again.
    pub(crate) repeats: Option<String>,
}

/// What became of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Ending {
    Done {
        sha256: Digest,
        text: bool,
        time: u64,
        /// How that is known, where it was found out later.
        how: Option<String>,
    },
    Failed(FailureRecord),
    /// It was found out that it never took effect.
    NotDone {
        how: String,
        time: u64,
    },
}

/// A failure without effect, and as long as what it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FailureRecord {
    pub(crate) why: String,
    /// For good: nothing but an override ends it.
    pub(crate) refused: bool,
    /// Milliseconds since 1970.
    pub(crate) until: Option<u64>,
    /// The required lanes, each with a digest over what it held.
    pub(crate) under: Vec<(String, Digest)>,
    pub(crate) policy: String,
    pub(crate) episode: EpisodeId,
    pub(crate) shown_in: Option<SpanId>,
    pub(crate) time: u64,
}

/// The attempts of one request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attempts {
    /// How many there were.
    pub(crate) number: u64,
    pub(crate) latest: Option<(Intent, Option<Ending>)>,
}

/// What one attempt claims.
#[derive(Clone, Copy, Debug)]
enum Part {
    Intent,
    Ending,
}

fn key(signature: &Signature, attempt: u64, part: Part) -> Digest {
    let domain: &[u8] = match part {
        Part::Intent => b"keepspan intent 1\0",
        Part::Ending => b"keepspan ending 1\0",
    };
    let (number, mut bytes) = (attempt.to_be_bytes(), [0_u8; 40]);
    for (byte, of) in bytes.iter_mut().zip(signature.digest().as_bytes().iter().chain(&number)) {
        *byte = *of;
    }
    Digest::of_two(domain, &bytes)
}

/// What a person's consent is spent by: one action that it was given to.
pub(crate) fn consent(episode: &EpisodeId, span: SpanId, signature: &Signature) -> Claim {
    let of = format!("{span} {signature} {episode}");
    Claim { signature: Digest::of_two(b"keepspan consent 1\0", of.as_bytes()), holder: Vec::new() }
}

fn claim(signature: Digest, value: &impl Serialize) -> Result<Claim, postcard::Error> {
    let holder = postcard::to_extend(value, vec![VERSION])?;
    Ok(Claim { signature, holder })
}

impl Intent {
    pub(crate) fn claim(&self, signature: &Signature, attempt: u64) -> Result<Claim, postcard::Error> {
        claim(key(signature, attempt, Part::Intent), self)
    }
}

impl Ending {
    pub(crate) fn claim(&self, signature: &Signature, attempt: u64) -> Result<Claim, postcard::Error> {
        claim(key(signature, attempt, Part::Ending), self)
    }
}

fn read<T: DeserializeOwned>(holder: &[u8]) -> Result<T, StoreError> {
    match holder.split_first() {
        Some((&VERSION, value)) => postcard::from_bytes(value).map_err(StoreError::backend),
        _ => Err(StoreError::backend("a claim is of another version of keepspan, or damaged")),
    }
}

/// The most attempts that are asked for at once.
const MOST: u64 = 64;

impl Attempts {
    /// Asks the store: one look-up where there was one attempt at most, O(log attempts) of them else.
    pub(crate) async fn of<S: AsyncStore>(store: &S, signature: &Signature) -> Result<Self, StoreError> {
        let (mut found, mut next, mut size) = (Self::default(), 1_u64, 2_u64);
        loop {
            let numbers = (next..next.saturating_add(size))
                .flat_map(|attempt| [Part::Intent, Part::Ending].map(|part| key(signature, attempt, part)));
            let holders = store.holders(&numbers.collect::<Vec<_>>()).await?;
            for (number, pair) in (next..).zip(holders.chunks_exact(2)) {
                let [Some(intent), ending] = pair else { return Ok(found) };
                let ending = ending.as_deref().map(read).transpose()?;
                found = Self { number, latest: Some((read(intent)?, ending)) };
            }
            if found.number.saturating_add(1) != next.saturating_add(size) {
                return Err(StoreError::backend("the store gave fewer holders than it was asked for"));
            }
            (next, size) = (next.saturating_add(size), size.saturating_mul(2).min(MOST));
        }
    }
}
