//! The store's tables, by version.

use std::time::Instant;

use deadpool_postgres::PoolError;
use tokio_postgres::{IsolationLevel, Row, error::SqlState};

use crate::{Error, Options, connection::comes_back};

/// Each takes the store from the version before it to its own, which is its place from 1 on.
const MIGRATIONS: [&str; 2] =
    [include_str!("../migrations/0001_store.sql"), include_str!("../migrations/0002_checks.sql")];

/// The version of the tables that this library reads and writes.
#[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "a handful")]
pub const VERSION: i32 = MIGRATIONS.len() as i32;

/// Holds every other migration of the database off: "keepspan" as a number.
const LOCK: i64 = 0x6b65_6570_7370_616e;

/// Creates the store where there is none, and brings one of an older version up to date, in one transaction. Several may
/// start at once: one does it, and the others find it done. Gives the version before, 0 for none.
///
/// Needs a role that may create the schema. An agent's role needs less, see the crate's page.
///
/// # Errors
/// [`Error::Version`] for a store of a newer version, and what the server says. Nothing is changed then.
pub async fn migrate(options: &Options) -> Result<i32, Error> {
    let (begun, pool) = (Instant::now(), options.pool()?);
    let mut client = pool.get().await.map_err(|error| match error {
        PoolError::Backend(error) if comes_back(&error) => {
            Error::Unavailable { attempts: 1, waited: begun.elapsed(), source: Some(error) }
        }
        PoolError::Backend(error) => error.into(),
        _ => Error::Closed,
    })?;
    let schema = &options.schema;
    // Whatever the operator's default, or one that waited would still see the store as it was before.
    let transaction = client.build_transaction().isolation_level(IsolationLevel::ReadCommitted).start().await?;
    encoded(transaction.query_one("SHOW server_encoding", &[]).await?.try_get(0)?)?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    // The functions keep this path, whoever calls them; without the last, a caller's temporary tables would come first.
    let begin = format!(
        "CREATE SCHEMA IF NOT EXISTS \"{schema}\"; SET LOCAL search_path = \"{schema}\", pg_temp; \
         CREATE TABLE IF NOT EXISTS migrations \
         (version integer PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now())"
    );
    transaction.batch_execute(&begin).await?;
    let before = transaction.query_one("SELECT coalesce(max(version), 0) FROM migrations", &[]).await?.try_get(0)?;
    if before > VERSION {
        return Err(Error::Version { schema: schema.clone(), found: before, supported: VERSION });
    }
    for (version, migration) in (1_i32..).zip(MIGRATIONS).filter(|(version, _)| *version > before) {
        transaction.batch_execute(migration).await?;
        transaction.execute("INSERT INTO migrations (version) VALUES ($1)", &[&version]).await?;
    }
    transaction.commit().await?;
    Ok(before)
}

/// What a store has to be before it is used, see [`fit`].
pub(crate) fn check(schema: &str) -> String {
    format!(
        "SELECT max(version), current_setting('fsync') = 'on', pg_is_in_recovery(), current_setting('server_encoding') \
         FROM \"{schema}\".migrations"
    )
}

/// Whether the answer to [`check`] is that of a store that keeps what it is given.
pub(crate) fn fit(row: &Row, schema: &str) -> Result<(), Error> {
    let schema = || schema.to_owned();
    encoded(row.try_get(3)?)?;
    match (row.try_get::<_, Option<i32>>(0)?, row.try_get(1)?, row.try_get(2)?) {
        (None, ..) => Err(Error::NoStore { schema: schema() }),
        (Some(found), ..) if found != VERSION => Err(Error::Version { schema: schema(), found, supported: VERSION }),
        (_, _, true) => Err(Error::Standby),
        (_, false, _) => Err(Error::NotDurable),
        _ => Ok(()),
    }
}

/// In another encoding the database cannot hold every name of a lane.
fn encoded(encoding: &str) -> Result<(), Error> {
    if encoding == "UTF8" { Ok(()) } else { Err(Error::Encoding { found: encoding.to_owned() }) }
}

/// What a refusal of [`check`] comes to.
pub(crate) fn without_store(error: tokio_postgres::Error, schema: &str) -> Error {
    match error.code() {
        Some(&SqlState::UNDEFINED_TABLE) => Error::NoStore { schema: schema.to_owned() },
        _ => error.into(),
    }
}
