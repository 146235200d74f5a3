//! What the store knows of a request: its attempts, each an intent and, once it is known, an ending. Both are claims, so
//! that of many who attempt the same one does, and whoever asks finds it in one look-up, whatever window it was.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{Action, Signature};
use crate::{
    CommitError, Digest, EpisodeId, SpanId,
    evidence::Consent,
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
    /// What the request is, in words, where its type says so.
    pub(crate) about: Option<String>,
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

/// One attempt of a request, with what became of it as far as that is known.
#[derive(Clone, Debug)]
pub(crate) struct Attempted {
    /// 1 for the first.
    pub(crate) number: u64,
    pub(crate) intent: Intent,
    pub(crate) ending: Option<Ending>,
}

impl Attempted {
    pub(crate) fn came_to_nothing(&self) -> bool {
        matches!(self.ending, Some(Ending::Failed(_) | Ending::NotDone { .. }))
    }
}

/// The attempts of one request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attempts {
    pub(crate) latest: Option<Attempted>,
    /// The last one before it that took effect, or may have: no later attempt that came to nothing undoes that.
    pub(crate) before: Option<Attempted>,
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

/// What spends a person's consent: one run, or one of each request where it was given to several. The same words cover a
/// request once, whichever it is said to be.
pub(crate) fn consent(episode: &EpisodeId, consent: &Consent, signature: &Signature) -> Vec<Claim> {
    let span = consent.span();
    let one = (!consent.several).then(|| format!("{span} {episode}"));
    let spent = one.into_iter().chain([format!("{span} {signature} {episode}")]);
    let claim = |of: String| Digest::of_two(b"keepspan consent 1\0", of.as_bytes());
    spent.map(|of| Claim { signature: claim(of), holder: Vec::new() }).collect()
}

/// Version, value, and a digest over both and what is claimed: one changed bit could make an outcome a failure.
fn claim(signature: Digest, value: &impl Serialize) -> Result<Claim, CommitError> {
    let unwritten = |error: postcard::Error| CommitError::Record(error.into());
    let mut holder = postcard::to_extend(value, vec![VERSION]).map_err(unwritten)?;
    let sum = Digest::of_two(signature.as_bytes(), &holder);
    holder.extend_from_slice(sum.as_bytes());
    Ok(Claim { signature, holder })
}

impl Intent {
    /// The first attempt of an action, before it is on record.
    pub(crate) fn of<A: Action>(action: &A, episode: EpisodeId) -> Self {
        let (action, about) = (A::NAME.to_owned(), action.describe());
        Self { episode, record: 0, time: 0, action, repeats: None, about }
    }

    pub(crate) fn claim(&self, signature: &Signature, attempt: u64) -> Result<Claim, CommitError> {
        claim(key(signature, attempt, Part::Intent), self)
    }
}

impl Ending {
    /// Bound to the intent that it ends: an attempt of another store ends none here.
    pub(crate) fn claim(&self, signature: &Signature, attempt: u64, intent: &Intent) -> Result<Claim, CommitError> {
        let (key, intent) = (key(signature, attempt, Part::Ending), intent.claim(signature, attempt)?);
        Ok(Claim { signature: key, ..claim(bound(&key, &intent.holder), self)? })
    }
}

fn bound(ending: &Digest, intent: &[u8]) -> Digest {
    Digest::of_two(ending.as_bytes(), intent)
}

fn read<T: DeserializeOwned>(signature: &Digest, holder: &[u8]) -> Result<T, StoreError> {
    let whole =
        holder.split_last_chunk().filter(|(of, sum)| Digest::of_two(signature.as_bytes(), of).as_bytes() == *sum);
    match whole.and_then(|(of, _)| of.split_first()) {
        Some((&VERSION, value)) => postcard::from_bytes(value).map_err(StoreError::backend),
        _ => Err(StoreError::backend("a claim is of another version of keepspan, or damaged")),
    }
}

/// As when a part of the store was lost, or an attempt of another store was settled in this one. It would end the next attempt
/// before that began, so the request does not run.
const NOT_BEGUN: &str = "an attempt that nobody began has an ending: the claims of this store are not whole";

/// The most attempts that are asked for at once.
const MOST: u64 = 64;

impl Attempts {
    /// Asks the store: one look-up where nobody made the request yet, one more after one attempt, else O(log attempts) of them
    /// up to 127 attempts, and one more for each 64 after that.
    pub(crate) async fn of<S: AsyncStore>(store: &S, signature: &Signature) -> Result<Self, StoreError> {
        let (mut found, mut next, mut size) = (Self::default(), 1_u64, 1_u64);
        loop {
            let end = next.saturating_add(size);
            let keys: Vec<_> = (next..end)
                .flat_map(|attempt| [Part::Intent, Part::Ending].map(|part| key(signature, attempt, part)))
                .collect();
            let holders = store.holders(&keys).await?;
            if holders.len() != keys.len() {
                return Err(StoreError::backend("the store gave fewer holders than it was asked for"));
            }
            for ((number, keys), pair) in (next..).zip(keys.chunks_exact(2)).zip(holders.chunks_exact(2)) {
                let ([of_intent, of_ending], [intent, ending]) = (keys, pair) else { return Ok(found) };
                let Some(intent) = intent else {
                    return if ending.is_none() { Ok(found) } else { Err(StoreError::backend(NOT_BEGUN)) };
                };
                let of_ending = bound(of_ending, intent);
                let intent = read(of_intent, intent)?;
                let ending = ending.as_deref().map(|ending| read(&of_ending, ending)).transpose()?;
                found.then(Attempted { number, intent, ending });
            }
            (next, size) = (end, size.saturating_mul(2).min(MOST));
        }
    }

    fn then(&mut self, latest: Attempted) {
        if let Some(earlier) = self.latest.replace(latest).filter(|of| !of.came_to_nothing()) {
            self.before = Some(earlier);
        }
    }
}
