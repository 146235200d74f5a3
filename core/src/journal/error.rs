//! What can be wrong with an episode's log.

use crate::{EpisodeId, SpanId, store::StoreError};

/// Why an episode's log was not accepted. Nothing is skipped: what follows a fault would rest on it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// A record does not check out.
    #[error("record {record} of episode `{episode}`: {fault}")]
    Record {
        /// The episode.
        episode: EpisodeId,
        /// The number of the record, from 0.
        record: u64,
        /// What is wrong with it.
        fault: Fault,
    },
    /// All records are well, and what they come to is not.
    #[error("the log of episode `{episode}`: {fault}")]
    Whole {
        /// The episode.
        episode: EpisodeId,
        /// What is wrong.
        fault: Fault,
    },
    /// The store has no record of the episode.
    #[error("the store has no episode `{episode}`: check the name, or open a new one")]
    NoEpisode {
        /// The episode.
        episode: EpisodeId,
    },
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What is wrong with a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Its digest does not follow from the record before.
    #[error(
        "it does not follow from the record before it: one of the two was changed, removed or moved; restore the store \
         from a copy"
    )]
    Chain,
    /// Its bytes are no record.
    #[error("its bytes are no record of this library: restore the store from a copy")]
    Unreadable,
    /// It was written by another version.
    #[error("it has version {found} and this library reads {supported}: use the keepspan that wrote it")]
    Version {
        /// The version it says.
        found: u8,
        /// The version this library reads.
        supported: u8,
    },
    /// The log's first record is no opening, or a later one is.
    #[error("an episode begins with one opening and has no other: restore the store from a copy")]
    Opening,
    /// It names a lane, a tool, a policy or a call that the log does not know.
    #[error("it names a {what} that the log does not have: restore the store from a copy")]
    Unknown {
        /// `lane`, `tool name`, `policy` or `call`.
        what: &'static str,
    },
    /// It names a span that never entered.
    #[error("it names {span}, which never entered: restore the store from a copy")]
    NoSpan {
        /// The span.
        span: SpanId,
    },
    /// It says something of a span that the records before contradict.
    #[error("{span}: {what}; restore the store from a copy")]
    Contradicts {
        /// The span.
        span: SpanId,
        /// What does not fit.
        what: &'static str,
    },
    /// A summary's provenance does not check out (rule R5).
    #[error("summary {span}: {what}; restore the store from a copy")]
    Provenance {
        /// The summary.
        span: SpanId,
        /// What does not fit.
        what: &'static str,
    },
}
