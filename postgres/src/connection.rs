//! One statement, tried again until it has an answer or the time is up.

use deadpool_postgres::{Object, Pool, PoolError};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_postgres::{
    Row,
    error::{Severity, SqlState},
    types::ToSql,
};

use crate::{Error, Options, Retry};

/// The connections of a store.
#[derive(Clone, Debug)]
pub(crate) struct Connections {
    pool: Pool,
    retry: Retry,
}

/// A statement without an answer.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) error: Error,
    /// Whether the server may have run it all the same.
    pub(crate) open: bool,
}

/// What became of one attempt.
enum Attempt {
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
        Ok(Self { pool: options.pool()?, retry: options.retry })
    }

    /// The rows that a statement gives: one round trip, after the first of its kind on a connection. A statement that
    /// writes may be run twice by this.
    pub(crate) async fn ask(&self, statement: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Failed> {
        let begun = Instant::now();
        let deadline = begun.checked_add(self.retry.deadline).unwrap_or(begun);
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
        let client = match timeout_at(deadline, self.pool.get()).await {
            Ok(Ok(client)) => client,
            Ok(Err(PoolError::Backend(error))) if comes_back(&error) => return Err(Attempt::NotSent(Some(error))),
            Ok(Err(PoolError::Backend(error))) => return Err(Attempt::Refused(error.into())),
            Ok(Err(PoolError::Timeout(_))) | Err(_) => return Err(Attempt::NotSent(None)),
            Ok(Err(_)) => return Err(Attempt::Refused(Error::Closed)),
        };
        let prepared = match timeout_at(deadline, client.prepare_cached(statement)).await {
            Ok(Ok(prepared)) => prepared,
            Ok(Err(error)) => {
                return Err(match judged(client, error) {
                    Attempt::Lost(error) => Attempt::NotSent(error),
                    judged => judged,
                });
            }
            Err(_) => {
                drop(Object::take(client));
                return Err(Attempt::NotSent(None));
            }
        };
        match timeout_at(deadline, client.query(&prepared, values)).await {
            Ok(Ok(rows)) => Ok(rows),
            Ok(Err(error)) => Err(judged(client, error)),
            Err(_) => {
                // Whoever has it next would wait for the same.
                drop(Object::take(client));
                Err(Attempt::Lost(None))
            }
        }
    }
}

/// What an error in the middle of a statement says of it.
fn judged(client: Object, error: tokio_postgres::Error) -> Attempt {
    match error.as_db_error() {
        Some(told) if !matches!(told.parsed_severity(), Some(Severity::Fatal | Severity::Panic)) => match told.code() {
            &SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED => Attempt::Again(error),
            _ => Attempt::Refused(error.into()),
        },
        // The server ended the connection, or it broke.
        _ => {
            drop(Object::take(client));
            Attempt::Lost(Some(error))
        }
    }
}

/// Whether a connection that was refused may be had later: nobody there, starting, stopping, full.
fn comes_back(error: &tokio_postgres::Error) -> bool {
    error.code().is_none_or(|code| {
        matches!(
            *code,
            SqlState::CANNOT_CONNECT_NOW
                | SqlState::ADMIN_SHUTDOWN
                | SqlState::CRASH_SHUTDOWN
                | SqlState::TOO_MANY_CONNECTIONS
        )
    })
}
