//! What can go wrong between here and the servers.

use std::{error::Error as _, time::Duration};

use keepspan::{Digest, store::StoreError};

/// Why a server refused, failed or did not answer. Within a [`StoreError`], it is the source of
/// [`StoreError::Backend`], by [`StoreError::backend`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address cannot be read.
    #[error("the address of the database cannot be read: {}; it looks like `postgres://user@host:5432/database`", told(.0))]
    Address(#[source] tokio_postgres::Error),
    /// The schema's name is not one.
    #[error("`{name}` is no name of a schema here: take 1 to 63 of a-z, 0-9 and _, not a digit first")]
    SchemaName {
        /// The name.
        name: String,
    },
    /// The TLS settings are no use.
    #[error("TLS cannot be set up: {0}; pass a configuration of your own to `Options::tls`, or `sslmode=disable`")]
    Tls(#[source] rustls::Error),
    /// The schema has no store.
    #[error("the schema `{schema}` has no store: run `keepspan migrate` once, or `keepspan_postgres::migrate`")]
    NoStore {
        /// The schema.
        schema: String,
    },
    /// The store was made by another version.
    #[error("the schema `{schema}` has version {found}, and this library reads {supported}: {}", newer(*found, *supported))]
    Version {
        /// The schema.
        schema: String,
        /// The version there.
        found: i32,
        /// The version this library reads.
        supported: i32,
    },
    /// The server acknowledges what it may lose.
    #[error("the server runs with `fsync = off`, so what it acknowledges may be lost: set it on")]
    NotDurable,
    /// The server only follows another.
    #[error("the server is a standby, which takes no writes and may be behind: give the address of the primary")]
    Standby,
    /// The database has another encoding.
    #[error("the database has the encoding {found}, and a store needs UTF8: create it with `ENCODING 'UTF8'`")]
    Encoding {
        /// Its encoding.
        found: String,
    },
    /// No answer within the [deadline](crate::Retry::deadline).
    #[error(
        "no answer after {attempts} attempts in {waited:?}{}: is the server up, and is the deadline long enough?",
        source.as_ref().map(|source| format!(", at last {}", told(source))).unwrap_or_default()
    )]
    Unavailable {
        /// How often it was tried.
        attempts: u32,
        /// How long.
        waited: Duration,
        /// What the last attempt met; none where it was still waiting.
        source: Option<tokio_postgres::Error>,
    },
    /// The server refused, and did nothing; or there is no way to it, whatever is tried: what is wrong is said.
    #[error("{}{}", if .0.as_db_error().is_some() { "the server refused: " } else { "no connection to the server: " }, told(.0))]
    Server(#[from] tokio_postgres::Error),
    /// The pool of connections is of no use any more.
    #[error("the pool of connections is closed: connect again")]
    Closed,
    /// The system gave no threads.
    #[error("no runtime could be started: {0}; are there threads to have?")]
    Runtime(#[source] std::io::Error),
    /// More than one statement carries.
    #[error(
        "a commit of {bytes} bytes is more than the server takes at once, {most}: set `Options::objects`, or push less at once"
    )]
    TooLarge {
        /// The bytes of it that would go to the database.
        bytes: usize,
        /// The most.
        most: usize,
    },
    /// A blob is in an object store that this handle does not have.
    #[error("blob {digest} is in an object store: set `Options::objects` as whoever wrote it did")]
    NoObjects {
        /// The blob.
        digest: Digest,
    },
    /// Under a blob's digest the object store has something else.
    #[error("the object of blob {digest} has {found} bytes and not {bytes}: it is not whole: remove it")]
    OtherObject {
        /// The blob.
        digest: Digest,
        /// The bytes of the blob.
        bytes: u64,
        /// Those of the object.
        found: u64,
    },
    /// A seal is on record, and the object that it takes away is there.
    #[error("blob {digest} is sealed, and its object could not be removed: {source}")]
    Unremoved {
        /// The blob.
        digest: Digest,
        /// What the object store said.
        source: object_store::Error,
    },
    /// The library was built without what reads such addresses.
    #[error("`{address}` takes the feature `{feature}` of `keepspan-postgres`: build with it")]
    ObjectsFeature {
        /// The address.
        address: String,
        /// The feature.
        feature: &'static str,
    },
    /// The schema, or something in it, belongs to somebody else, who could have put there what would run as this role.
    #[error(
        "the schema `{schema}` belongs to `{owner}`, or has what does: migrate as that role, or take another schema"
    )]
    Owner {
        /// The schema.
        schema: String,
        /// Whose it is.
        owner: String,
    },
    /// The object store refused or failed.
    #[error("the object store failed: {0}")]
    Objects(#[from] object_store::Error),
    /// The address of the object store cannot be read.
    #[error("`{address}` is no address of an object store: it looks like `s3://bucket/folder` or `file:///folder`")]
    ObjectsAddress {
        /// The address.
        address: String,
    },
}

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        Self::backend(error)
    }
}

/// What the server says, or what went wrong on the way there: `tokio_postgres` itself shows neither.
fn told(error: &tokio_postgres::Error) -> String {
    if let Some(told) = error.as_db_error() {
        return told.message().to_owned();
    }
    let (mut said, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        said = format!("{said}: {error}");
        cause = error.source();
    }
    said
}

/// What to do about a store of another version.
fn newer(found: i32, supported: i32) -> &'static str {
    if found > supported {
        "use the newer library that wrote it"
    } else {
        "run `keepspan migrate` once, or `keepspan_postgres::migrate`"
    }
}
