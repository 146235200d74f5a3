//! Redact: what must not be kept leaves the store too, with a record of why (rule R23).

use std::collections::BTreeSet;

use super::{
    Mutation, Operation, Shared, candidates::Class, contents::Contents, pointers::Edit, step::Plan, table::Residency,
};
use crate::{
    Digest, RedactError, SelectionError, SpanId, TokenCounter, Unexplained,
    error::explained,
    journal::{Event, MutationRecord},
    tool::RECALL,
};

/// Who takes it upon themselves to redact protected text; see
/// [`Window::redact_protected`](crate::Window::redact_protected). Their name is logged.
#[derive(Clone, Debug)]
pub struct Authority(String);

impl Authority {
    /// The owner of what the window keeps: a person or a process that answers for it.
    ///
    /// # Errors
    /// When the name is blank.
    pub fn of(owner: impl Into<String>) -> Result<Self, Unexplained> {
        explained("authority", owner).map(Self)
    }
}

/// Removes texts from the window and the store for good; see [`Lane::redact`](crate::Lane::redact).
#[derive(Debug)]
pub struct Redact {
    /// The lane whose handle was used; none for the window's own way.
    pub(crate) lane: Option<u16>,
    pub(crate) spans: Vec<SpanId>,
    pub(crate) mutation: Mutation,
    pub(crate) authority: Option<Authority>,
}

/// What was redacted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redacted {
    pub(crate) spans: Vec<SpanId>,
    pub(crate) summaries: Vec<SpanId>,
    pub(crate) excerpts: Vec<SpanId>,
}

impl Redacted {
    /// Every span of this episode that had one of the texts, ascending: all are removed.
    pub fn spans(&self) -> &[SpanId] {
        &self.spans
    }

    /// Answers to [recalls](crate::Window::answer_recall) of them, which have parts of the text: redact them as well.
    pub fn excerpts(&self) -> &[SpanId] {
        &self.excerpts
    }

    /// Summaries made from them, which may repeat what they said: read each, and redact it as well where it does.
    pub fn summaries(&self) -> &[SpanId] {
        &self.summaries
    }
}

#[doc(hidden)]
#[derive(Debug)]
pub struct Redacting {
    redacted: Redacted,
    mutations: Vec<MutationRecord>,
    edit: Edit,
}

impl<'w, St> Operation<'w, St> for Redact {
    type Output = Redacted;
    type Error = RedactError;
    type Effect = Redacting;

    fn plan(self, contents: &Contents, counter: &dyn TokenCounter) -> Result<Plan<Redacting>, RedactError> {
        let Self { lane, spans: named, mutation, authority } = self;
        let digests = contents.redactable(&named, lane)?;
        let spans = contents.holders(&digests);
        contents.no_seal_torn(&spans.iter().map(|(span, _)| *span).collect::<Vec<_>>())?;
        if authority.is_none() {
            contents.none_protected(&named, &spans)?;
        }
        let mut mutations = Vec::with_capacity(spans.len());
        for (holder, _) in &spans {
            mutations.push(contents.notice(*holder, &mutation, counter)?);
        }
        let events = contents.redaction(&spans, &mutations, &mutation, authority);
        let spans: Vec<_> = spans.into_iter().map(|(span, _)| span).collect();
        let state = |wanted| move |span: &&SpanId| contents.table.get(**span).is_some_and(|e| e.residency == wanted);
        let evicted: Vec<_> = spans.iter().filter(state(Residency::Evicted)).copied().collect();
        let edit = contents.pointers.uncover(&evicted, &contents.price(counter))?;
        let pointed = (!edit.is_empty()).then(|| Event::Pointed(edit.clone()));
        let events = events.into_iter().chain(pointed).collect();
        let summaries = contents.summaries_of(&spans);
        let excerpts = contents.excerpts_of(&spans);
        let effect = Redacting { redacted: Redacted { spans, summaries, excerpts }, mutations, edit };
        // Another episode may have brought the text to the store.
        Ok(Plan { events, seals: digests.into_iter().collect(), ..Plan::new(effect) })
    }

    fn apply(effect: Redacting, _: Vec<Vec<u8>>, contents: &mut Contents, _: &'w Shared<St>) -> Redacted {
        let Redacting { redacted, mutations, edit } = effect;
        for (span, mutation) in redacted.spans.iter().zip(&mutations) {
            contents.remove(*span, mutation);
        }
        contents.repoint(edit);
        redacted
    }
}

impl Contents {
    /// SHA-256 of a span's bytes, whether the store has them or not.
    pub(super) fn digest(&self, span: SpanId) -> Option<Digest> {
        let entry = self.table.get(span)?;
        if entry.durable {
            return Some(entry.digest);
        }
        Some(Digest::of(entry.content.as_ref()?.as_bytes()))
    }

    /// The texts of spans that are there and not gone, each in the lane, where one is given.
    fn redactable(&self, spans: &[SpanId], lane: Option<u16>) -> Result<BTreeSet<Digest>, SelectionError> {
        if spans.is_empty() {
            return Err(SelectionError::Empty);
        }
        let text = |span: &SpanId| {
            let (span, entry) = (*span, self.entry(*span)?);
            if let Some(lane) = lane {
                self.in_lane(span, entry, lane)?;
            }
            if self.gone.contains_key(&span) {
                return Err(SelectionError::Discarded { span });
            }
            self.digest(span).ok_or(SelectionError::Unrecorded { span })
        };
        spans.iter().map(text).collect()
    }

    /// Every span with one of these texts, ascending. O(spans), and a hash of each that is not in the store.
    pub(crate) fn holders(&self, digests: &BTreeSet<Digest>) -> Vec<(SpanId, Digest)> {
        let spans = self.table.iter().map(|(span, _)| span).filter(|span| !self.gone.contains_key(span));
        spans
            .filter_map(|span| Some((span, self.digest(span)?)))
            .filter(|(_, digest)| digests.contains(digest))
            .collect()
    }

    /// Whether all spans of the texts are in lanes whose spans may be redacted without authority.
    fn none_protected(&self, named: &[SpanId], holders: &[(SpanId, Digest)]) -> Result<(), RedactError> {
        for (holder, digest) in holders {
            let entry = self.entry(*holder)?;
            if self.class(entry.lane) >= Class::Protected {
                let span = named.iter().copied().find(|span| self.digest(*span) == Some(*digest)).unwrap_or(*holder);
                return Err(RedactError::Protected { span, holder: *holder, lane: self.lane_name(entry) });
            }
        }
        Ok(())
    }

    /// What is recorded.
    fn redaction(
        &self,
        spans: &[(SpanId, Digest)],
        notices: &[MutationRecord],
        mutation: &Mutation,
        authority: Option<Authority>,
    ) -> Vec<Event> {
        let mut events = Vec::new();
        for ((span, digest), notice) in spans.iter().zip(notices) {
            let Some(entry) = self.table.get(*span) else { continue };
            if !entry.durable {
                // The log may have nothing of it yet.
                let record = self.span_record(*span, entry, mutation.digest.then_some(*digest));
                events.push(Event::Discarded { span: record, mutation: notice.clone() });
            }
        }
        let authority = authority.map(|Authority(owner)| owner);
        let spans = spans.iter().map(|(span, _)| *span).collect();
        events.push(Event::Redacted { spans, mutations: notices.to_vec(), authority });
        events
    }

    /// The answers to recalls of any of these that are not gone: what was recalled is the subject of such a read.
    fn excerpts_of(&self, spans: &[SpanId]) -> Vec<SpanId> {
        let of = |subject: &str| SpanId::parse(subject.split([':', '?']).next()?);
        let recalled = |span: &SpanId, subject: &str| {
            let entry = self.table.get(*span).and_then(|entry| self.name(entry));
            entry.is_some_and(|name| **name == *RECALL)
                && of(subject).is_some_and(|source| spans.binary_search(&source).is_ok())
        };
        let subjects = self.reads.subjects().filter(|(span, _)| !self.gone.contains_key(span));
        subjects.filter(|(span, subject)| recalled(span, subject)).map(|(span, _)| span).collect()
    }

    /// The summaries that were made from any of these, directly or not, and stay.
    fn summaries_of(&self, spans: &[SpanId]) -> Vec<SpanId> {
        let goes = |span: &SpanId| spans.binary_search(span).is_ok();
        let stays = |summary: &SpanId| !goes(summary) && !self.gone.contains_key(summary);
        let from = |summary: &SpanId| self.chain(*summary).iter().any(goes);
        self.derivations.keys().filter(|summary| stays(summary) && from(summary)).copied().collect()
    }
}
