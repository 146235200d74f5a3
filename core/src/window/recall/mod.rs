//! Recall: the text of any span, verified, without changing the window.

mod answer;
mod excerpt;

pub use self::answer::{AnswerRecall, RecallReply};
use super::{Operation, Shared, contents::Contents, step::Plan, table::Residency};
use crate::{Content, Digest, Origin, RecallError, SelectionError, SpanId, TokenCounter, evidence::Trust};

/// Reads a span's text; see [`Window::recall`](crate::Window::recall). Gives it as [`Recalled`].
#[derive(Debug)]
pub struct Recall(pub(crate) SpanId);

/// A span's text, byte for byte as it entered.
#[derive(Clone, Debug)]
pub struct Recalled {
    span: SpanId,
    content: Content,
    verified: Option<Digest>,
    pub(in crate::window) numbering: u64,
    pub(in crate::window) origin: Origin,
    pub(in crate::window) trust: Trust,
}

impl Recalled {
    /// The span.
    pub fn span(&self) -> SpanId {
        self.span
    }

    /// Its text or bytes.
    pub fn content(&self) -> &Content {
        &self.content
    }

    /// The SHA-256 that the bytes from the store were verified against; `None` when the text is in the window and was
    /// never externalized.
    pub fn sha256(&self) -> Option<Digest> {
        self.verified
    }
}

impl<'w, St> Operation<'w, St> for Recall {
    type Output = Recalled;
    type Error = RecallError;
    type Effect = Found;

    fn plan(self, contents: &Contents, _: &dyn TokenCounter) -> Result<Plan<Found>, RecallError> {
        let Self(span) = self;
        let entry = contents.entry(span)?;
        if entry.residency == Residency::Unrecorded {
            return Err(SelectionError::Unrecorded { span }.into());
        }
        if let Some(gone) = contents.gone.get(&span) {
            let (reason, recovery) = (gone.reason.clone(), gone.recovery.clone());
            return Err(RecallError::Discarded { span, reason, recovery });
        }
        let digest = entry.durable.then_some(entry.digest);
        let plan = Plan::new(Found {
            span,
            digest,
            text: entry.text,
            resident: entry.content.clone(),
            numbering: contents.numbering,
            origin: contents.said_by(span, entry),
            trust: contents.trust(span).unwrap_or(Trust::Hearsay),
        });
        Ok(match (&entry.content, digest) {
            (None, Some(digest)) => Plan { fetch: vec![digest], ..plan },
            _ => plan,
        })
    }

    fn apply(found: Found, fetched: Vec<Vec<u8>>, _: &mut Contents, _: &'w Shared<St>) -> Recalled {
        let Found { span, digest, text, resident, numbering, origin, trust } = found;
        let bytes = || super::step::content(fetched.into_iter().next().unwrap_or_default(), text);
        Recalled { span, content: resident.unwrap_or_else(bytes), verified: digest, numbering, origin, trust }
    }
}

#[doc(hidden)]
#[derive(Debug)]
pub struct Found {
    span: SpanId,
    digest: Option<Digest>,
    text: bool,
    resident: Option<Content>,
    numbering: u64,
    origin: Origin,
    trust: Trust,
}

impl Contents {
    /// What a request has left of its limit, in tokens.
    fn free(&self) -> u64 {
        self.budget.map_or(u64::MAX, |budget| budget.limit().saturating_sub(self.request()))
    }
}
