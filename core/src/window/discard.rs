//! Discard: what must not be kept leaves as a declared mutation, with a record written first (rule R23).

use super::{
    Operation, Shared,
    contents::{self, Contents},
    step::Plan,
    table::Residency,
};
use crate::{DiscardError, SpanId, TokenCounter, Unexplained, kind::Evictable, pointer::Plain, record::Event};

/// Why a span is removed for good, and what to do if it is needed after all. Both are logged; the text is not.
#[derive(Clone, Debug)]
pub struct Mutation {
    reason: String,
    recovery: String,
}

impl Mutation {
    /// A mutation with its reason and recovery path.
    ///
    /// # Errors
    /// When either is blank.
    pub fn new(reason: impl Into<String>, recovery: impl Into<String>) -> Result<Self, Unexplained> {
        let (reason, recovery) = (reason.into(), recovery.into());
        match (reason.trim().is_empty(), recovery.trim().is_empty()) {
            (true, _) => Err(Unexplained { what: "reason" }),
            (_, true) => Err(Unexplained { what: "recovery path" }),
            _ => Ok(Self { reason, recovery }),
        }
    }
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
    discard: contents::Discard,
}

impl<'w, St> Operation<'w, St> for Discard {
    type Output = ();
    type Error = DiscardError;
    type Effect = Discarded;

    fn plan(self, contents: &Contents, counter: &dyn TokenCounter) -> Result<Plan<Discarded>, DiscardError> {
        let Self { lane, span, mutation: Mutation { reason, recovery } } = self;
        contents.is_lane_of::<Evictable>(lane)?;
        contents.select(&[span], lane, Residency::Resident)?;
        let entry = contents.entry(span)?;
        if let Some(holder) = contents.in_store(span, entry) {
            return Err(DiscardError::InStore { span, holder });
        }
        let lane = contents.lane_name(entry).to_owned();
        let notice = format!("[{span} {lane}: removed for good: {}; to recover: {}]", Plain(&reason), Plain(&recovery));
        let count = counter.text(&notice)?;
        let event =
            Event::Discarded { span, lane, tokens: entry.tokens, reason: reason.clone(), recovery: recovery.clone() };
        let discard = contents::Discard { reason, recovery, notice: notice.into(), count };
        Ok(Plan { events: vec![event], ..Plan::new(Discarded { span, discard }) })
    }

    fn apply(Discarded { span, discard }: Discarded, _: Vec<Vec<u8>>, contents: &mut Contents, _: &'w Shared<St>) {
        contents.leave(span, Residency::Discarded);
        contents.fresh.retain(|fresh| *fresh != span);
        contents.utilization = contents.utilization.saturating_add(u64::from(discard.count.tokens()));
        contents.certainty = contents.certainty.max(discard.count.certainty());
        contents.mark_lossy(format!("{span} was discarded: {}", discard.reason));
        contents.discarded.insert(span, discard);
    }
}
