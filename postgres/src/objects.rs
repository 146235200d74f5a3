//! Large blobs in an object store, each under its digest.

use std::{path::PathBuf, sync::Arc};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use keepspan::{Digest, store::Blob};
use object_store::{
    Error as ObjectError, ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMode, PutPayload, WriteMultipart,
    local::LocalFileSystem, parse_url_opts, path::Path,
};
use tokio::time::sleep;
use url::Url;

use crate::{Error, Retry};

/// How many are on their way at once.
pub(crate) const AT_ONCE: usize = 8;

/// How often a blob is sent that is neither to be put nor there: some 5 seconds.
const MOST_ATTEMPTS: u32 = 12;

/// From how many bytes on one is sent in parts, and how many a part has.
const LARGE: usize = 16 << 20;
const PART: usize = 8 << 20;

/// Where blobs above a size go: an object store, each under its digest, put at most once.
///
/// The objects of a store are in a folder that has the name of its [schema](crate::Options::schema), so that stores of one
/// database can share a bucket; stores of two databases need a [`folder`](Self::folder) each, since a seal of one removes the
/// object. They are there before the transaction that names them, so a crash leaves at most an object that nothing names, which
/// [`verify`](crate::PostgresStore::verify) lists. How long it is tried is the object store's own to say, not
/// [`Retry`](crate::Retry)'s: a large one takes its time.
#[derive(Clone, Debug)]
pub struct Objects {
    store: Arc<dyn ObjectStore>,
    folder: Path,
    above: usize,
}

impl Objects {
    /// Blobs of more than 1 MiB go to `store`, which must know [`PutMode::Create`]; a [`LocalFileSystem`] must be
    /// `with_fsync(true)`.
    pub fn new(store: Arc<dyn ObjectStore>) -> Self {
        Self { store, folder: Path::default(), above: 1 << 20 }
    }

    /// The object store at an address: `file:///folder`, and by the crate's features `s3://bucket/folder`,
    /// `gs://bucket/folder`, `az://container/folder`. Credentials and endpoints are read from the environment, as
    /// [`parse_url_opts`] says: `AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT`.
    ///
    /// # Errors
    /// [`Error::ObjectsAddress`], and what the store says of it.
    pub fn open(address: &str) -> Result<Self, Error> {
        let wrong = || Error::ObjectsAddress { address: address.to_owned() };
        let url = Url::parse(address).map_err(|_| wrong())?;
        if url.scheme() == "file" {
            let folder: PathBuf = url.to_file_path().map_err(|()| wrong())?;
            return Ok(Self::new(Arc::new(LocalFileSystem::new_with_prefix(folder)?.with_fsync(true))));
        }
        let feature = match url.scheme() {
            "s3" | "s3a" if !cfg!(feature = "s3") => Some("s3"),
            "gs" if !cfg!(feature = "gcs") => Some("gcs"),
            "az" | "adl" | "azure" | "abfs" | "abfss" if !cfg!(feature = "azure") => Some("azure"),
            _ => None,
        };
        if let Some(feature) = feature {
            return Err(Error::ObjectsFeature { address: address.to_owned(), feature });
        }
        let variables =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let (store, folder) = parse_url_opts(&url, variables)?;
        Ok(Self { folder, ..Self::new(store.into()) })
    }

    /// Other than 1 MiB: the most bytes of a blob that stays in the database. Blobs that are there stay where they are, and
    /// an object of one that the database has already is an orphan.
    #[must_use]
    pub fn above(self, bytes: usize) -> Self {
        Self { above: bytes, ..self }
    }

    /// A folder within the one there is.
    #[must_use]
    pub fn folder(self, folder: impl Into<Path>) -> Self {
        let folder = folder.into();
        Self { folder: self.folder.parts().chain(folder.parts()).collect(), ..self }
    }

    /// Those of one schema.
    pub(crate) fn of_schema(self, schema: &str) -> Self {
        Self { folder: self.folder.join(schema), ..self }
    }

    /// Whether a blob is for here.
    pub(crate) fn take(&self, blob: &Blob) -> bool {
        blob.bytes().len() > self.above
    }

    fn place(&self, digest: &Digest) -> Path {
        self.folder.clone().join(digest.to_string())
    }

    pub(crate) async fn put<'a>(&self, blobs: impl Iterator<Item = &'a Blob>) -> Result<(), Error> {
        let puts: Vec<_> = blobs.map(|blob| self.put_one(blob)).collect();
        stream::iter(puts).buffer_unordered(AT_ONCE).try_collect().await
    }

    async fn put_one(&self, blob: &Blob) -> Result<(), Error> {
        let place = self.place(blob.digest());
        if blob.bytes().len() >= LARGE {
            // Parts have no condition. Two that send them at once send the same bytes.
            return if self.there(blob, &place).await? { Ok(()) } else { self.put_parts(blob, &place).await };
        }
        let mut attempts = 0_u32;
        loop {
            let bytes = PutPayload::from(blob.bytes().to_vec());
            let taken = match self.store.put_opts(&place, bytes, PutMode::Create.into()).await {
                Err(taken @ ObjectError::AlreadyExists { .. }) => taken,
                put => return Ok(put.map(drop)?),
            };
            if self.there(blob, &place).await? {
                return Ok(());
            }
            // Some stores say so while another is still sending it, which may yet fail.
            attempts = attempts.saturating_add(1);
            if attempts > MOST_ATTEMPTS {
                return Err(taken.into());
            }
            sleep(Retry::default().pause(attempts)).await;
        }
    }

    async fn put_parts(&self, blob: &Blob, place: &Path) -> Result<(), Error> {
        let mut upload = WriteMultipart::new_with_chunk_size(self.store.put_multipart(place).await?, PART);
        for part in blob.bytes().chunks(PART) {
            if let Err(error) = upload.wait_for_capacity(AT_ONCE).await {
                // The bucket would keep what it has of them; the error that counts is the first.
                drop(upload.abort().await);
                return Err(error.into());
            }
            upload.write(part);
        }
        upload.finish().await?;
        Ok(())
    }

    /// Whether a blob's object is there, as long as the blob. Its bytes are checked by whoever reads them.
    async fn there(&self, blob: &Blob, place: &Path) -> Result<bool, Error> {
        let bytes = u64::try_from(blob.bytes().len()).unwrap_or(u64::MAX);
        match self.store.head(place).await {
            Ok(object) if object.size == bytes => Ok(true),
            Ok(object) => Err(Error::OtherObject { digest: *blob.digest(), bytes, found: object.size }),
            Err(ObjectError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) async fn get(&self, digest: &Digest) -> Result<Option<Vec<u8>>, ObjectError> {
        match self.store.get(&self.place(digest)).await {
            Err(ObjectError::NotFound { .. }) => Ok(None),
            found => Ok(Some(found?.bytes().await?.into())),
        }
    }

    /// One that is not there is gone already.
    pub(crate) async fn remove(&self, digest: &Digest) -> Result<(), ObjectError> {
        match self.store.delete(&self.place(digest)).await {
            Err(ObjectError::NotFound { .. }) => Ok(()),
            removed => removed,
        }
    }

    /// Every object of this folder that has the name of a digest, with it.
    pub(crate) async fn all(&self, mut each: impl FnMut(Digest, ObjectMeta)) -> Result<(), ObjectError> {
        let mut found = self.store.list(Some(&self.folder));
        while let Some(object) = found.try_next().await? {
            let name = object.location.filename().map(|name| serde_json::from_value(name.into()));
            if let Some(Ok(digest)) = name
                && object.location == self.place(&digest)
            {
                each(digest, object);
            }
        }
        Ok(())
    }
}
