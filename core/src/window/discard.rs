//! Discard: what must not be kept leaves as a declared mutation, with a record written first (rule R23).

use super::{Operation, Shared, contents::Contents, step::Plan, table::Residency};
use crate::{
    Digest, DiscardError, SpanId, TokenCounter, Unexplained,
    error::explained,
    journal::{Event, MutationRecord},
    kind::Evictable,
};

/// Why a span is removed for good, and what to do if it is needed after all. Both are logged; the text is not.
#[derive(Clone, Debug)]
pub struct Mutation {
    pub(super) reason: String,
    pub(super) recovery: String,
    pub(super) digest: bool,
}

impl Mutation {
    /// A mutation with its reason and recovery path.
    ///
    /// # Errors
    /// When either is blank.
    pub fn new(reason: impl Into<String>, recovery: impl Into<String>) -> Result<Self, Unexplained> {
        let (reason, recovery) = (explained("reason", reason)?, explained("recovery path", recovery)?);
        Ok(Self { reason, recovery, digest: false })
    }

    /// Records the SHA-256 of what is removed as well, so that a copy found elsewhere can be told. Left out otherwise: a short
    /// secret could be guessed from it. It says nothing of a span that was externalized: the log has that digest already and
    /// keeps it, so after a redaction let a short secret count as known, and change it.
    #[must_use]
    pub fn with_digest(self) -> Self {
        Self { digest: true, ..self }
    }
}

/// What is said of a text that another episode had sealed.
pub(super) fn elsewhere() -> Mutation {
    let (reason, recovery) = ("the store has its text sealed", "ask the owner of the episode that redacted it");
    Mutation { reason: reason.to_owned(), recovery: recovery.to_owned(), digest: false }
}

/// Removes a span for good; see [`Lane::discard`](crate::Lane::discard).
#[derive(Debug)]
pub struct Discard {
    pub(crate) lane: u16,
    pub(crate) span: SpanId,
    pub(crate) mutation: Mutation,
}

#[doc(hidden)]
#[derive(Debug)]
pub struct Discarded {
    span: SpanId,
    mutation: MutationRecord,
}

impl<'w, St> Operation<'w, St> for Discard {
    type Output = ();
    type Error = DiscardError;
    type Effect = Discarded;

    fn plan(self, contents: &Contents, counter: &dyn TokenCounter) -> Result<Plan<Discarded>, DiscardError> {
        let Self { lane, span, mutation } = self;
        contents.is_lane_of::<Evictable>(lane)?;
        contents.select(&[span], lane, Residency::Resident)?;
        contents.no_seal_torn(&[span])?;
        let entry = contents.entry(span)?;
        if let Some(holder) = contents.in_store(span, entry) {
            return Err(DiscardError::InStore { span, holder });
        }
        let record = contents.notice(span, &mutation, counter)?;
        let sha256 = mutation.digest.then(|| entry.content.as_ref().map(|content| Digest::of(content.as_bytes())));
        let entered = contents.span_record(span, entry, sha256.flatten());
        let event = Event::Discarded { span: entered, mutation: record.clone() };
        Ok(Plan { events: vec![event], ..Plan::new(Discarded { span, mutation: record }) })
    }

    fn apply(Discarded { span, mutation }: Discarded, _: Vec<Vec<u8>>, contents: &mut Contents, _: &'w Shared<St>) {
        contents.remove(span, &mutation);
    }
}
