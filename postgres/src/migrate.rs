//! The store's tables, by version.

use tokio_postgres::{IsolationLevel, error::SqlState};

use crate::{Error, Options, connection::Failed};

/// Each takes the store from the version before it to its own, which is its place from 1 on.
const MIGRATIONS: [&str; 1] = [include_str!("../migrations/0001_store.sql")];

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
    let pool = options.pool()?;
    let mut client = pool.get().await.map_err(|error| match error {
        deadpool_postgres::PoolError::Backend(error) => Error::Server(error),
        _ => Error::Closed,
    })?;
    let schema = &options.schema;
    // Whatever the operator's default, or one that waited would still see the store as it was before.
    let transaction = client.build_transaction().isolation_level(IsolationLevel::ReadCommitted).start().await?;
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

/// What a store has to be before it is used.
pub(crate) const CHECK: &str =
    "SELECT (SELECT max(version) FROM migrations), current_setting('fsync') = 'on', pg_is_in_recovery()";

/// What [`CHECK`] comes to.
pub(crate) fn checked(answer: Result<Vec<tokio_postgres::Row>, Failed>, schema: &str) -> Result<(), Error> {
    let none = || Error::NoStore { schema: schema.to_owned() };
    let rows = answer.map_err(|failed| match failed.error {
        Error::Server(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => none(),
        error => error,
    })?;
    let row = rows.first().ok_or_else(none)?;
    match (row.try_get::<_, Option<i32>>(0)?, row.try_get(1)?, row.try_get(2)?) {
        (None, ..) => Err(none()),
        (Some(found), ..) if found != VERSION => {
            Err(Error::Version { schema: schema.to_owned(), found, supported: VERSION })
        }
        (_, _, true) => Err(Error::Standby),
        (_, false, _) => Err(Error::NotDurable),
        _ => Ok(()),
    }
}
