//! Why a command failed, and the exit code that says so.

use std::{io, path::PathBuf, process::ExitCode};

use keepspan::{JournalError, ResumeError, audit::AuditError, store::StoreError};

/// One failure; printed as one line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// Faults were found, and printed.
    #[error("{0}")]
    Faulty(String),
    /// The command line names what is not there.
    #[error("{0}")]
    Usage(String),
    /// The file is not there.
    #[error("{}: no such file; check the path", .0.display())]
    NoFile(PathBuf),
    /// The store could not be opened or read.
    #[error(transparent)]
    Store(StoreError),
    /// The server of a store could not be asked.
    #[cfg(feature = "postgres")]
    #[error(transparent)]
    Server(#[from] keepspan_postgres::Error),
    /// A session could not be read.
    #[error("{}: {why}", .file.display())]
    Session {
        /// The file.
        file: PathBuf,
        /// What the reader said, with the line.
        why: String,
    },
    /// A window or its store refused what a replay did.
    #[error("the replay stopped: {0}")]
    Replay(String),
    /// Standard output, or the report, could not be written.
    #[error("{name}: {source}; free space or choose another place")]
    Write {
        /// What was written.
        name: String,
        /// What the system said.
        source: io::Error,
    },
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Corrupt { .. } | StoreError::Missing { .. } => Self::Faulty(error.to_string()),
            other => Self::Store(other),
        }
    }
}

impl From<JournalError> for Failure {
    fn from(error: JournalError) -> Self {
        match error {
            JournalError::Store(error) => error.into(),
            JournalError::NoEpisode { .. } => Self::Usage(error.to_string()),
            other => Self::Faulty(other.to_string()),
        }
    }
}

impl From<AuditError> for Failure {
    fn from(error: AuditError) -> Self {
        match error {
            AuditError::Journal(error) | AuditError::Text(ResumeError::Journal(error)) => error.into(),
            AuditError::NoTurn { .. } => Self::Usage(error.to_string()),
            other => Self::Faulty(other.to_string()),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(source: io::Error) -> Self {
        Self::Write { name: "standard output".to_owned(), source }
    }
}

impl Failure {
    /// Whether the reader of our output just had enough, as `head` does.
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Write { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }

    /// The code that `--help` documents.
    pub fn code(&self) -> ExitCode {
        match self {
            Self::Faulty(_) => ExitCode::from(1),
            Self::Usage(_) | Self::Write { .. } => ExitCode::from(2),
            #[cfg(feature = "postgres")]
            Self::Server(_) => ExitCode::from(3),
            Self::NoFile(_) | Self::Store(_) | Self::Session { .. } | Self::Replay(_) => ExitCode::from(3),
        }
    }
}
