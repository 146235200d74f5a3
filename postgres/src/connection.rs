//! One statement, tried again until it has an answer or the time is up.

use std::{error::Error as _, io};

use deadpool_postgres::{Object, Pool, PoolError};
use scopeguard::{ScopeGuard, guard};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_postgres::{
    Row,
    error::{DbError, Severity, SqlState},
    types::ToSql,
};

use crate::{
    Error, Options, Retry,
    migrate::{check, fit, without_store},
};

/// The connections of a store.
#[derive(Clone, Debug)]
pub(crate) struct Connections {
    pool: Pool,
    retry: Retry,
    schema: String,
    /// Asked on every new connection: another server can be at the address by then.
    check: String,
}

/// A statement without an answer.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) error: Error,
    /// Whether the server may have run it all the same.
    pub(crate) open: bool,
}

/// What became of one attempt.
pub(crate) enum Attempt {
    /// Refused for good; nothing happened.
    Refused(Error),
    /// The server asks for another; nothing happened.
    Again(tokio_postgres::Error),
    /// The statement was not sent.
    NotSent(Option<tokio_postgres::Error>),
    /// It was, and there is no answer.
    Lost(Option<tokio_postgres::Error>),
}

impl Connections {
    pub(crate) fn new(options: &Options) -> Result<Self, Error> {
        let schema = options.schema.clone();
        Ok(Self { pool: options.pool()?, retry: options.retry, check: check(&schema), schema })
    }

    /// The rows that a statement gives: one round trip, after the first of its kind on a connection. A statement that
    /// writes may be run twice by this.
    pub(crate) async fn ask(&self, statement: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Failed> {
        let (begun, deadline) = self.retry.until();
        let (mut attempts, mut open) = (0_u32, false);
        loop {
            attempts = attempts.saturating_add(1);
            let source = match self.attempt(statement, values, deadline).await {
                Ok(rows) => return Ok(rows),
                Err(Attempt::Refused(error)) => return Err(Failed { error, open }),
                Err(Attempt::Again(error)) => Some(error),
                Err(Attempt::NotSent(error)) => error,
                Err(Attempt::Lost(error)) => {
                    open = true;
                    error
                }
            };
            let pause = self.retry.pause(attempts);
            if Instant::now().checked_add(pause).is_none_or(|next| next >= deadline) {
                let waited = begun.elapsed();
                return Err(Failed { error: Error::Unavailable { attempts, waited, source }, open });
            }
            sleep(pause).await;
        }
    }

    async fn attempt(
        &self,
        statement: &str,
        values: &[&(dyn ToSql + Sync)],
        deadline: Instant,
    ) -> Result<Vec<Row>, Attempt> {
        let mut sent = false;
        let answer = timeout_at(deadline, self.run(statement, values, &mut sent)).await;
        answer.unwrap_or(Err(if sent { Attempt::Lost(None) } else { Attempt::NotSent(None) }))
    }

    async fn run(&self, statement: &str, values: &[&(dyn ToSql + Sync)], sent: &mut bool) -> Result<Vec<Row>, Attempt> {
        let client = self.pool.get().await.map_err(unconnected)?;
        let new = Object::metrics(&client).recycle_count == 0;
        // Ended, unless its last answer came: the next would wait for that. So it is where this future is dropped.
        let client = guard(client, |client| drop(Object::take(client)));
        let answer = async {
            if new {
                let row =
                    client.query_one(&self.check, &[]).await.map_err(|error| without_store(error, &self.schema))?;
                fit(&row, &self.schema)?;
            }
            let prepared = client.prepare_cached(statement).await?;
            *sent = true;
            Ok(client.query(&prepared, values).await?)
        };
        match answer.await {
            Ok(rows) => {
                drop(ScopeGuard::into_inner(client));
                Ok(rows)
            }
            Err(error) => Err(judged(client, error, *sent)),
        }
    }
}

impl From<Error> for Attempt {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

/// In the middle of a statement, or of several.
impl From<tokio_postgres::Error> for Attempt {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.as_db_error().map_or_else(|| comes_back(&error), ends) {
            true => Self::Lost(Some(error)),
            false => Self::Refused(error.into()),
        }
    }
}

/// Why there is no connection.
pub(crate) fn unconnected(error: PoolError) -> Attempt {
    match error {
        PoolError::Backend(error) if comes_back(&error) => Attempt::NotSent(Some(error)),
        PoolError::Backend(error) => Attempt::Refused(error.into()),
        PoolError::Timeout(_) => Attempt::NotSent(None),
        _ => Attempt::Refused(Error::Closed),
    }
}

/// What an error in the middle of a statement says of it. The connection is for the next, where the server only refused that.
fn judged(client: ScopeGuard<Object, impl FnOnce(Object)>, error: Error, sent: bool) -> Attempt {
    let Error::Server(error) = error else { return Attempt::Refused(error) };
    match error.as_db_error() {
        Some(told) if !ends(told) => {
            // One whose plans the server does not take any more is of no use either.
            if sent && *told.code() != SqlState::FEATURE_NOT_SUPPORTED {
                drop(ScopeGuard::into_inner(client));
            }
            match told.code() {
                &SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED => Attempt::Again(error),
                _ => Attempt::Refused(error.into()),
            }
        }
        // The server ended the connection, or it broke.
        _ if sent => Attempt::Lost(Some(error)),
        _ => Attempt::NotSent(Some(error)),
    }
}

/// Whether the server is starting or stopping, or a pooler has none.
fn went(code: &SqlState) -> bool {
    ["08", "57P"].iter().any(|class| code.code().starts_with(class))
}

/// Whether an error ends the connection, so that nobody knows what became of the statement. A pooler between says so in
/// words of its own.
fn ends(told: &DbError) -> bool {
    went(told.code())
        || matches!(told.parsed_severity(), Some(Severity::Fatal | Severity::Panic))
        || matches!(told.severity(), "FATAL" | "PANIC")
}

/// Whether a connection that was not to be had may be later: nobody there, starting, stopping, full. What is wrong with the
/// address, the password or the certificate stays so.
fn comes_back(error: &tokio_postgres::Error) -> bool {
    match error.code() {
        Some(code) => went(code) || *code == SqlState::TOO_MANY_CONNECTIONS,
        None => match error.source().and_then(|source| source.downcast_ref::<io::Error>()) {
            Some(source) => source.get_ref().is_none_or(|inner| !inner.is::<rustls::Error>()),
            None => error.is_closed(),
        },
    }
}
