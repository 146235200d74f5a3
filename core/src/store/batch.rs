//! What one commit writes.

use crate::{Content, Digest, EpisodeId};

/// A span's bytes under their digest; shared with the window, not copied.
#[derive(Clone, Debug)]
pub struct Blob {
    digest: Digest,
    content: Content,
}

impl Blob {
    /// Hashes `content`, once: O(length).
    pub fn new(content: impl Into<Content>) -> Self {
        let content = content.into();
        Self { digest: Digest::of(content.as_bytes()), content }
    }

    /// SHA-256 of the bytes.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// The bytes to store.
    pub fn bytes(&self) -> &[u8] {
        self.content.as_bytes()
    }
}

/// One claim: a signature, of what must be done once at most, and who holds it from now on (rule R19).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// What is claimed.
    pub signature: Digest,
    /// What whoever comes later is told.
    pub holder: Vec<u8>,
}

/// What one commit writes, all or nothing: blobs, seals, claims, then log records of one episode.
#[derive(Debug)]
pub struct Batch {
    episode: EpisodeId,
    expected: u64,
    blobs: Vec<Blob>,
    records: Vec<Vec<u8>>,
    seals: Vec<Digest>,
    claims: Vec<Claim>,
}

impl Batch {
    /// A batch for `episode`, whose log must have exactly `expected` records when it is committed.
    pub fn new(episode: EpisodeId, expected: u64, blobs: Vec<Blob>, records: Vec<Vec<u8>>) -> Self {
        Self { episode, expected, blobs, records, seals: Vec::new(), claims: Vec::new() }
    }

    /// Seals `digests` in the same commit (rule R23): the bytes under each are gone when it returns, a read answers
    /// [`StoreError::Sealed`](super::StoreError::Sealed), and no put brings them back, not even one of this batch. A
    /// digest that the store does not have is sealed all the same.
    pub fn sealing(self, digests: Vec<Digest>) -> Self {
        Self { seals: digests, ..self }
    }

    /// Takes `claims` in the same commit, each once only across every process that shares the store: where one of them is
    /// held already, by an earlier one of these too, the commit is refused with
    /// [`StoreError::Claimed`](super::StoreError::Claimed) (rule R19).
    pub fn claiming(self, claims: Vec<Claim>) -> Self {
        Self { claims, ..self }
    }

    /// The episode whose log grows.
    pub fn episode(&self) -> &EpisodeId {
        &self.episode
    }

    /// The number of records the episode must have now.
    pub fn expected(&self) -> u64 {
        self.expected
    }

    /// The blobs, each to be put once per digest.
    pub fn blobs(&self) -> &[Blob] {
        &self.blobs
    }

    /// The records, to be appended in this order.
    pub fn records(&self) -> &[Vec<u8>] {
        &self.records
    }

    /// The digests whose bytes must not be kept.
    pub fn seals(&self) -> &[Digest] {
        &self.seals
    }

    /// The first holder of a signature that the batch claims twice, which every store refuses with it. O(claims · log).
    pub fn claimed_twice(&self) -> Option<&Claim> {
        let mut claims: Vec<_> = self.claims.iter().collect();
        claims.sort_by_key(|claim| claim.signature);
        claims.windows(2).find_map(|pair| match pair {
            [first, second] if first.signature == second.signature => Some(*first),
            _ => None,
        })
    }

    /// The signatures to take, each of which must be free.
    pub fn claims(&self) -> &[Claim] {
        &self.claims
    }
}
