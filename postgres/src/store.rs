//! The store.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use keepspan::{
    Digest, EpisodeId,
    store::{AsyncStore, Batch, Blob, StoreError},
};
use tokio_postgres::Row;

use crate::{
    Error, Objects, Options,
    commit::{Arguments, bytes_of, int, statement},
    connection::{Connections, Failed},
    objects::AT_ONCE,
    verify::SEALED,
};

/// In any order, those that there are: the order asked for takes the server longer than a map takes here.
const BLOBS: &str = "SELECT digest, sealed, bytes FROM blobs WHERE digest = ANY ($1)";
const LOG: &str = "SELECT record FROM log WHERE episode = $1 AND number >= $2 ORDER BY number LIMIT $3";
const LENGTH: &str = "SELECT coalesce(max(number) + 1, 0) FROM log WHERE episode = $1";
const HOLDERS: &str = "SELECT holder FROM unnest($1::bytea[]) WITH ORDINALITY AS asked (signature, place) \
                       LEFT JOIN claims USING (signature) ORDER BY place";
/// One step of the index for each, however long the logs.
const EPISODES: &str = "WITH RECURSIVE names AS ( \
     (SELECT episode FROM log ORDER BY episode LIMIT 1) UNION ALL \
     SELECT (SELECT episode FROM log WHERE episode > names.episode ORDER BY episode LIMIT 1) \
     FROM names WHERE names.episode IS NOT NULL) \
     SELECT episode, (SELECT max(number) + 1 FROM log WHERE log.episode = names.episode) \
     FROM names WHERE episode IS NOT NULL";

/// A store that many processes on many machines share, in a schema of a PostgreSQL database. Cheap to clone.
///
/// A commit is one transaction and one round trip; so is every read, whose large blobs are then fetched from the
/// [object store](Objects), where there is one. After a lost connection each tries again as [`Retry`](crate::Retry)
/// says. A commit whose answer was lost is asked about under a number of its own, and never written twice; only when no
/// answer comes within the deadline it is [`StoreError::Unacknowledged`], and
/// [`Window::recover`](keepspan::Window::recover_async) asks later.
///
/// A future that is dropped in the middle of a commit leaves it to the server whether it happens, as that error does.
#[derive(Clone, Debug)]
pub struct PostgresStore {
    pub(crate) connections: Connections,
    pub(crate) objects: Option<Objects>,
    /// Objects of sealed blobs that could not be removed yet, for every copy of this handle to try again.
    unremoved: Arc<Mutex<BTreeSet<Digest>>>,
}

impl PostgresStore {
    /// Connects, and checks that the schema has a store of this version on a server that keeps what it acknowledges.
    ///
    /// # Errors
    /// [`Error`] says what is wrong.
    pub async fn connect(options: Options) -> Result<Self, Error> {
        let connections = Connections::new(&options)?;
        connections.ask("SELECT", &[]).await.map_err(|failed| failed.error)?;
        let objects = options.objects.map(|objects| objects.of_schema(&options.schema));
        Ok(Self { connections, objects, unremoved: Arc::default() })
    }

    /// Every episode that has records, ascending, with their number. O(episodes · log of the store).
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn episodes(&self) -> Result<Vec<(EpisodeId, u64)>, StoreError> {
        let rows = self.connections.ask(EPISODES, &[]).await?;
        let episode = |row: &Row| {
            let name = String::from_utf8_lossy(column::<&[u8]>(row, 0)?).into_owned();
            Ok((EpisodeId::new(name), number(column(row, 1)?)))
        };
        rows.iter().map(episode).collect()
    }

    /// After the transaction: the objects of what is sealed go, those of this batch too, which are for nothing.
    async fn remove(&self, batch: &Batch, sealed: Vec<Vec<u8>>) -> Result<(), StoreError> {
        if self.objects.is_none() {
            return Ok(());
        }
        let digests = sealed.into_iter().filter_map(|digest| Some(Digest::from_bytes(digest.try_into().ok()?)));
        self.unremoved().extend(digests.chain(batch.seals().iter().copied()));
        // The log says that they are gone, and they may not be.
        self.finish().await.map_err(|_| StoreError::Unacknowledged)
    }

    fn unremoved(&self) -> MutexGuard<'_, BTreeSet<Digest>> {
        self.unremoved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a seal was kept from removing is removed, or said to be there: before that nobody is told that the seal is done.
    async fn finish(&self) -> Result<(), Error> {
        let Some(objects) = &self.objects else { return Ok(()) };
        let unremoved = self.unremoved().clone();
        for digest in unremoved {
            objects.remove(&digest).await.map_err(|source| Error::Unremoved { digest, source })?;
            self.unremoved().remove(&digest);
        }
        Ok(())
    }

    /// Why a batch was not committed.
    async fn refusal(&self, batch: &Batch, failed: Failed) -> StoreError {
        let refusal = match Refusal::of(&failed.error) {
            // An earlier attempt may have written what leaves no mark of its own.
            Some(Refusal::Length(_)) if failed.open && batch.records().is_empty() && batch.claims().is_empty() => None,
            refusal => refusal,
        };
        let error = match refusal {
            Some(Refusal::Length(found)) => {
                StoreError::Conflict { episode: batch.episode().clone(), expected: batch.expected(), found }
            }
            Some(Refusal::Claimed(signature)) => match self.holders(&[signature]).await {
                Ok(holders) => {
                    StoreError::Claimed { signature, holder: holders.into_iter().next().flatten().unwrap_or_default() }
                }
                Err(error) => error,
            },
            None if failed.open => return StoreError::Unacknowledged,
            None if !matches!(failed.error, Error::Server(_)) => return failed.into(),
            None => failed.into(),
        };
        self.take_back(batch, error).await
    }

    /// What was put for a batch that was refused, and must not be kept, goes. What this does not reach is for `scrub`.
    async fn take_back(&self, batch: &Batch, refusal: StoreError) -> StoreError {
        drop(self.remove_sealed(batch).await);
        refusal
    }

    /// The objects of this batch that are of sealed blobs go.
    async fn remove_sealed(&self, batch: &Batch) -> Result<(), StoreError> {
        let Some(objects) = &self.objects else { return Ok(()) };
        let outside = batch.blobs().iter().filter(|blob| objects.take(blob)).map(Blob::digest);
        for digest in self.among(SEALED, outside).await? {
            objects.remove(&digest).await.map_err(Error::from)?;
        }
        Ok(())
    }

    /// Of each blob its bytes, where the database has them.
    async fn blobs(&self, digests: &[Digest]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let rows = self.connections.ask(BLOBS, &[&bytes_of(digests)]).await?;
        let mut found = HashMap::with_capacity(rows.len());
        for row in &rows {
            found.insert(column::<&[u8]>(row, 0)?, row);
        }
        let blob = |digest: &Digest| match found.get(&digest.as_bytes()[..]) {
            None => Err(StoreError::Missing { digest: *digest }),
            Some(row) if column(row, 1)? => Err(StoreError::Sealed { digest: *digest }),
            Some(row) => column(row, 2),
        };
        digests.iter().map(blob).collect()
    }

    /// A blob's bytes, wherever they are.
    async fn whole(&self, bytes: Option<Vec<u8>>, digest: Digest) -> Result<Vec<u8>, StoreError> {
        if let Some(bytes) = bytes {
            return Ok(bytes);
        }
        let objects = self.objects.as_ref().ok_or(Error::NoObjects { digest })?;
        match objects.get(&digest).await.map_err(Error::from)? {
            Some(bytes) => Ok(bytes),
            // Sealed since, or lost.
            None => {
                self.blobs(&[digest]).await?;
                Err(StoreError::Missing { digest })
            }
        }
    }
}

impl AsyncStore for PostgresStore {
    async fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        self.finish().await?;
        if let Some(claim) = batch.claimed_twice() {
            return Err(match self.length(batch.episode()).await? {
                found if found != batch.expected() => {
                    StoreError::Conflict { episode: batch.episode().clone(), expected: batch.expected(), found }
                }
                _ => StoreError::Claimed { signature: claim.signature, holder: claim.holder.clone() },
            });
        }
        let arguments = Arguments::of(batch, |blob| self.objects.as_ref().is_some_and(|objects| objects.take(blob)))?;
        if let Some(objects) = &self.objects {
            let put = objects.put(batch.blobs().iter().filter(|blob| objects.take(blob))).await;
            if let Err(error) = put {
                return Err(self.take_back(batch, error.into()).await);
            }
        }
        match self.connections.ask(statement(batch), &arguments.values()).await {
            Ok(rows) => self.remove(batch, rows.first().map_or(Ok(Vec::new()), |row| column(row, 0))?).await,
            Err(failed) => Err(self.refusal(batch, failed).await),
        }
    }

    async fn get_many(&self, digests: &[Digest]) -> Result<Vec<Vec<u8>>, StoreError> {
        let blobs = self.blobs(digests).await?;
        if blobs.iter().all(Option::is_some) {
            return Ok(blobs.into_iter().flatten().collect());
        }
        let each: Vec<_> = blobs.into_iter().zip(digests).map(|(blob, digest)| self.whole(blob, *digest)).collect();
        stream::iter(each).buffered(AT_ONCE).try_collect().await
    }

    async fn read(&self, episode: &EpisodeId, from: u64, most: u64) -> Result<Vec<Vec<u8>>, StoreError> {
        self.finish().await?;
        let rows = self.connections.ask(LOG, &[&episode.as_str().as_bytes(), &int(from), &int(most)]).await?;
        rows.iter().map(|row| column(row, 0)).collect()
    }

    async fn length(&self, episode: &EpisodeId) -> Result<u64, StoreError> {
        let rows = self.connections.ask(LENGTH, &[&episode.as_str().as_bytes()]).await?;
        rows.first().map_or(Ok(0), |row| Ok(number(column(row, 0)?)))
    }

    async fn holders(&self, signatures: &[Digest]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let rows = self.connections.ask(HOLDERS, &[&bytes_of(signatures)]).await?;
        rows.iter().map(|row| column(row, 0)).collect()
    }
}

impl From<Failed> for StoreError {
    fn from(failed: Failed) -> Self {
        failed.error.into()
    }
}

/// Why `commit` of the migrations refused a batch.
enum Refusal {
    Length(u64),
    Claimed(Digest),
}

impl Refusal {
    fn of(error: &Error) -> Option<Self> {
        let Error::Server(error) = error else { return None };
        let told = error.as_db_error()?;
        let detail = told.detail()?;
        match told.code().code() {
            "KS001" => detail.parse().ok().map(Self::Length),
            "KS002" => signature(detail).map(Self::Claimed),
            _ => None,
        }
    }
}

/// A digest from hex digits.
fn signature(hex: &str) -> Option<Digest> {
    serde_json::from_value(hex.into()).ok()
}

fn column<'a, T: tokio_postgres::types::FromSql<'a>>(row: &'a Row, at: usize) -> Result<T, StoreError> {
    row.try_get(at).map_err(|error| Error::from(error).into())
}

fn number(int: i64) -> u64 {
    u64::try_from(int).unwrap_or(0)
}
