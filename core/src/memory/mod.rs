//! What the episode ever held: absence from the window is not "never observed" (rule R21).

mod ask;
mod question;
pub(crate) mod read;
mod whereabouts;

pub use self::{question::Question, whereabouts::Whereabouts};
use crate::{
    SpanId,
    store::StoreError,
    window::contents::{Commit, Contents},
};

/// What the record says of a [`Question`], by [`Window::ask`](crate::Window::ask). Never a `bool`: "not found" has two
/// meanings, and only one of them is a fact (rule R21).
#[derive(Debug)]
#[must_use]
#[non_exhaustive]
pub enum Memory {
    /// It entered the window.
    Recorded {
        /// Every span that matches, oldest first, and where its text is now; never empty.
        spans: Vec<Whereabouts>,
        /// Why there may be more than these; `None` when these are all.
        more: Option<Doubt>,
    },
    /// It never entered, and the record is complete, since every owner before [closed](crate::Window::close) its window: a
    /// fact to rely on.
    NotRecorded,
    /// Nothing was found, and nothing follows from that.
    Unknown {
        /// Why.
        why: Doubt,
    },
}

impl Memory {
    fn new(spans: Vec<Whereabouts>, doubt: Option<Doubt>) -> Self {
        match (spans.is_empty(), doubt) {
            (false, more) => Self::Recorded { spans, more },
            (true, Some(why)) => Self::Unknown { why },
            (true, None) => Self::NotRecorded,
        }
    }
}

/// Why "not found" is no "never": the first reason there is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Doubt {
    /// Something left for good, so it may have been that; see [`Fidelity`](crate::Fidelity).
    #[error(
        "the window is lossy since record {since} ({why}): what is gone may have been it; look at the source again"
    )]
    Lossy {
        /// The number of the log record since which it is so.
        since: u64,
        /// The reason that was given.
        why: String,
    },
    /// A process ended without [closing](crate::Window::close) its window: what it saw and had not committed is not on record.
    #[error(
        "before record {record} a process ended without closing its window, and may have seen more than is on record: look at \
         the source again"
    )]
    Stopped {
        /// The number of the record by which another owner went on.
        record: u64,
    },
    /// A process ended before a commit had a span.
    #[error("{span} entered and was never committed, so what it said is not on record: look at the source again")]
    Uncommitted {
        /// The span.
        span: SpanId,
    },
    /// A commit was cancelled, or its answer was lost.
    #[error("a commit got no answer, so only the store knows the whole record: `Window::recover` asks it")]
    Interrupted,
    /// Another owner goes on with the episode, or the store could not say whether one does.
    #[error("another owner may have written to the episode since: ask a window that resumes it")]
    Superseded,
    /// A blob could not be read and verified.
    #[error("the text of {span} could not be read: {source}")]
    Unreadable {
        /// The span.
        span: SpanId,
        /// What the store said.
        source: StoreError,
    },
    /// The span holds bytes, and the question is about text: a screenshot may show it.
    #[error("{span} holds bytes and no text, so what it shows is not searched: recall it and look")]
    NotText {
        /// The span.
        span: SpanId,
    },
    /// A call without its result, a result without its call's id, or one without its tool's name.
    #[error("{span} may be it: its call, its tool or its result is not on record; recall it and look")]
    Unlinked {
        /// The span.
        span: SpanId,
    },
}

/// Whether the record holds all that ever entered.
fn complete(contents: &Contents) -> Result<(), Doubt> {
    if let Some(lossy) = &contents.lossy {
        return Err(Doubt::Lossy { since: lossy.record, why: lossy.reason.clone() });
    }
    if let Some(span) = contents.gaps.first() {
        return Err(Doubt::Uncommitted { span: *span });
    }
    if let Some(record) = contents.stopped {
        return Err(Doubt::Stopped { record });
    }
    // Also one whose future was leaked: no step runs while the window is asked.
    if contents.commit != Commit::Idle {
        return Err(Doubt::Interrupted);
    }
    Ok(())
}
