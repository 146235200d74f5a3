//! Whether the database and the object store agree.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::SystemTime,
};

use keepspan::{Digest, store::StoreError};

use crate::{Error, PostgresStore, commit::bytes_of};

/// What the object store should have.
const NAMED: &str = "SELECT digest FROM blobs WHERE bytes IS NULL AND NOT sealed";
const NAMED_AMONG: &str = "SELECT digest FROM blobs WHERE bytes IS NULL AND NOT sealed AND digest = ANY ($1)";
pub(crate) const SEALED: &str = "SELECT digest FROM blobs WHERE sealed AND digest = ANY ($1)";

/// How many are asked about at once.
const GROUP: usize = 1_000;

/// What [`PostgresStore::verify`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// Objects that there are.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Objects that nothing names, by digest.
    pub orphans: Vec<Orphan>,
    /// Blobs whose object is not there: their text is lost. Never after a crash, only after somebody removed it.
    pub dangling: Vec<Digest>,
}

/// An object that no commit names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Orphan {
    /// What it is the bytes of.
    pub digest: Digest,
    /// How many.
    pub bytes: u64,
    /// Since when it is there. A commit that is under way has not named its own yet.
    pub since: SystemTime,
    /// Whether its bytes must not be kept: a seal was cut short between the database and the object store. See
    /// [`PostgresStore::scrub`].
    pub sealed: bool,
}

impl PostgresStore {
    /// Compares what the database names with what the object store has; the bytes themselves are checked with the
    /// episode's, by [`audit::verify`](keepspan::audit::verify). O(objects) memory.
    ///
    /// # Errors
    /// When either cannot be read.
    pub async fn verify(&self) -> Result<Verified, StoreError> {
        let Some(objects) = &self.objects else { return Ok(Verified::default()) };
        let mut named = BTreeMap::new();
        for row in self.connections.ask(NAMED, &[]).await? {
            let digest: &[u8] = row.try_get(0).map_err(Error::from)?;
            named.extend(digest.try_into().ok().map(|digest| (Digest::from_bytes(digest), false)));
        }
        let (mut verified, mut unnamed) = (Verified::default(), BTreeMap::new());
        objects
            .all(|digest, object| {
                verified.objects = verified.objects.saturating_add(1);
                verified.bytes = verified.bytes.saturating_add(object.size);
                match named.get_mut(&digest) {
                    Some(there) => *there = true,
                    None => drop(unnamed.insert(digest, object)),
                }
            })
            .await
            .map_err(Error::from)?;
        // What was named meanwhile is none, and what is not named now may be sealed.
        for digest in self.among(NAMED_AMONG, unnamed.keys()).await? {
            unnamed.remove(&digest);
        }
        let sealed = self.among(SEALED, unnamed.keys()).await?;
        verified.dangling = named.into_iter().filter(|(_, there)| !there).map(|(digest, _)| digest).collect();
        // One that was sealed meanwhile is gone rightly.
        let gone = self.among(SEALED, verified.dangling.iter()).await?;
        verified.dangling.retain(|digest| !gone.contains(digest));
        verified.orphans = unnamed
            .into_iter()
            .map(|(digest, object)| Orphan {
                digest,
                bytes: object.size,
                since: object.last_modified.into(),
                sealed: sealed.contains(&digest),
            })
            .collect();
        Ok(verified)
    }

    /// Removes the objects of sealed blobs that a commit, cut short, left: it was
    /// [`StoreError::Unacknowledged`]. Gives their number.
    ///
    /// # Errors
    /// When either store fails.
    pub async fn scrub(&self) -> Result<u64, StoreError> {
        let Some(objects) = &self.objects else { return Ok(0) };
        let mut removed = 0_u64;
        for orphan in self.verify().await?.orphans.iter().filter(|orphan| orphan.sealed) {
            objects.remove(&orphan.digest).await.map_err(Error::from)?;
            removed = removed.saturating_add(1);
        }
        Ok(removed)
    }

    /// Those of `digests` that a query gives.
    pub(crate) async fn among(
        &self,
        query: &str,
        digests: impl Iterator<Item = &Digest>,
    ) -> Result<BTreeSet<Digest>, StoreError> {
        let (digests, mut found) = (digests.copied().collect::<Vec<_>>(), BTreeSet::new());
        for group in digests.chunks(GROUP) {
            for row in self.connections.ask(query, &[&bytes_of(group)]).await? {
                let digest: &[u8] = row.try_get(0).map_err(Error::from)?;
                found.extend(digest.try_into().ok().map(Digest::from_bytes));
            }
        }
        Ok(found)
    }
}
