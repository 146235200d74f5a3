//! The store's tables, by version.

use deadpool_postgres::Pool;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_postgres::{IsolationLevel, Row, error::SqlState};

use crate::{
    Error, Options,
    connection::{Attempt, unconnected},
};

/// Each takes the store from the version before it to its own, which is its place from 1 on.
const MIGRATIONS: [&str; 2] =
    [include_str!("../migrations/0001_store.sql"), include_str!("../migrations/0002_checks.sql")];

/// The version of the tables that this library reads and writes.
#[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "a handful")]
pub const VERSION: i32 = MIGRATIONS.len() as i32;

/// Holds every other migration of the database off: "keepspan" as a number.
const LOCK: i64 = 0x6b65_6570_7370_616e;

/// Creates the store where there is none, and brings one of an older version up to date, in one transaction. Several may
/// start at once: one does it, and the others find it done. Gives the version before, 0 for none. After a lost answer it
/// tries again, as [`Retry`](crate::Retry) says, and may then find it done by itself.
///
/// Needs a role that may create the schema, or has it; an agent's role is another, see the crate's page. While it works, nobody
/// else does.
///
/// # Errors
/// [`Error::Version`] for a store of a newer version, [`Error::Owner`] for a schema that somebody else could have prepared, and
/// what the server says: nothing is changed then. After [`Error::Unavailable`] nobody knows: run it again.
pub async fn migrate(options: &Options) -> Result<i32, Error> {
    let pool = options.pool()?;
    let (begun, deadline) = options.retry.until();
    let mut attempts = 0_u32;
    loop {
        attempts = attempts.saturating_add(1);
        let source = match timeout_at(deadline, once(&pool, &options.schema, deadline)).await {
            Ok(Ok(before)) => return Ok(before),
            Ok(Err(Attempt::Refused(error))) => return Err(error),
            Ok(Err(Attempt::Again(error))) => Some(error),
            Ok(Err(Attempt::NotSent(error) | Attempt::Lost(error))) => error,
            Err(_) => None,
        };
        let pause = options.retry.pause(attempts);
        if Instant::now().checked_add(pause).is_none_or(|next| next >= deadline) {
            return Err(Error::Unavailable { attempts, waited: begun.elapsed(), source });
        }
        sleep(pause).await;
    }
}

async fn once(pool: &Pool, schema: &str, deadline: Instant) -> Result<i32, Attempt> {
    let mut client = pool.get().await.map_err(unconnected)?;
    // Whatever the operator's default, or one that waited would still see the store as it was before.
    let transaction = client.build_transaction().isolation_level(IsolationLevel::ReadCommitted).start().await?;
    encoded(transaction.query_one("SHOW server_encoding", &[]).await?.try_get(0)?)?;
    // Or the server would go on to wait, and others behind it.
    let wait = deadline.saturating_duration_since(Instant::now()).as_millis().clamp(1, 1 << 30);
    transaction.batch_execute(&format!("SET LOCAL lock_timeout = {wait}")).await?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    if transaction.query_opt("SELECT FROM pg_namespace WHERE nspname = $1", &[&schema]).await?.is_none() {
        transaction.batch_execute(&format!("CREATE SCHEMA \"{schema}\"")).await?;
    }
    // Before anything in it is read: a view can run what it likes too.
    if let Some(row) = transaction.query_opt(STRANGER, &[&schema]).await? {
        return Err(Error::Owner { schema: schema.to_owned(), owner: row.try_get(0)? }.into());
    }
    // The functions keep this path, whoever calls them; without the last, a caller's temporary tables would come first.
    let begin = format!(
        "SET LOCAL search_path = \"{schema}\", pg_temp; CREATE TABLE IF NOT EXISTS migrations \
         (version integer PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now())"
    );
    transaction.batch_execute(&begin).await?;
    let before = transaction.query_one("SELECT coalesce(max(version), 0) FROM migrations", &[]).await?.try_get(0)?;
    let before = known(before, schema)?;
    for (version, migration) in (1_i32..).zip(MIGRATIONS).filter(|(version, _)| *version > before) {
        transaction.batch_execute(migration).await?;
        transaction.execute("INSERT INTO migrations (version) VALUES ($1)", &[&version]).await?;
    }
    transaction.commit().await?;
    Ok(before)
}

/// Whoever else has the schema or what is in it: that would run with the rights of this role.
const STRANGER: &str = "SELECT pg_get_userbyid(owner)::text FROM pg_namespace, LATERAL ( \
     SELECT nspowner UNION ALL SELECT relowner FROM pg_class WHERE relnamespace = pg_namespace.oid \
     UNION ALL SELECT proowner FROM pg_proc WHERE pronamespace = pg_namespace.oid) AS owners (owner) \
     WHERE nspname = $1 AND owner <> (SELECT oid FROM pg_roles WHERE rolname = current_user) LIMIT 1";

/// A version that this library can go on from.
fn known(found: i32, schema: &str) -> Result<i32, Error> {
    if found > VERSION {
        return Err(Error::Version { schema: schema.to_owned(), found, supported: VERSION });
    }
    Ok(found)
}

/// What a store has to be before it is used, see [`fit`]; and what its session has to be, from then on.
pub(crate) fn check(schema: &str) -> String {
    // Not as options of the connection, which a pooler between does not pass on. Every statement has one good plan: the server
    // would plan a look-up of a few anew each time, which takes longer. And it is to notice that nobody waits for an answer.
    format!(
        "SELECT max(version), current_setting('fsync') = 'on', pg_is_in_recovery(), current_setting('server_encoding'), \
         set_config('search_path', '{schema}', false), set_config('plan_cache_mode', 'force_generic_plan', false), \
         (SELECT set_config(name, '100', false) FROM pg_settings \
          WHERE name = 'client_connection_check_interval' AND version() LIKE '%linux%') \
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
