//! What can go wrong in a search.

use crate::{SpanId, store::StoreError};

/// Why an index was not updated, or a query not answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// The index is of another window.
    #[error("this index is of another window, and span ids are of one window only: make one with `Search::new`")]
    OtherWindow,
    /// A double quote without its other one.
    #[error("the double quote at byte {at} of the query is not closed: close it, or leave it out")]
    OpenQuote {
        /// Where it is, in bytes.
        at: usize,
    },
    /// Nothing in it can be looked for.
    #[error("`{part}` has no letter and no digit, so there is no word to look for: ask `Question::text` for marks")]
    NoWord {
        /// The query, or what stands in quotes.
        part: String,
    },
    /// The store failed.
    #[error("the text of {span} could not be read: {source}")]
    Store {
        /// The span.
        span: SpanId,
        /// What the store said.
        source: StoreError,
    },
    /// The index itself failed.
    #[error("the index failed: {0}; make a new one with `Search::new`, which reads all texts again")]
    Index(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl From<rusqlite::Error> for SearchError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Index(error.into())
    }
}
