//! Citing spans: what a claim rests on, and how far that can be trusted (rule R20).

use std::marker::PhantomData;

use super::{
    Lane, Recalled, Window,
    candidates::Class,
    contents::Contents,
    table::{Entry, Residency},
};
use crate::{
    ContextState, Field, Origin, SelectionError, SpanId,
    evidence::{Cited, Consent, Evidence, EvidenceError, Trust, Verified},
    kind::Kind,
    rule::MayConsent,
    tool::RECALL,
};

impl<'w, St, F: Field, S> Lane<'w, St, F, S> {
    /// Cites a span of this lane that is in the window: [`Raw`](crate::evidence::Raw) evidence, but [`SecondHand`](crate::evidence::SecondHand) of a
    /// `#[derived]` lane and [`Unbacked`](crate::evidence::Unbacked) of a `#[rationale]`. O(log spans), of a summary O(sources).
    ///
    /// # Errors
    /// [`EvidenceError`]: the span is not of this lane, not in the window, said by neither a tool nor a person where the
    /// lane is first-hand, or superseded by a newer observation of its subject.
    pub fn cite(&self, span: SpanId) -> Result<Evidence<<F::Kind as Kind>::Cited>, EvidenceError> {
        let contents = self.shared().lock();
        let entry = contents.entry(span)?;
        contents.in_lane(span, entry, F::AT.0)?;
        contents.is_current(span, entry)?;
        if contents.exchanges.is_unfinished(span) {
            return Err(EvidenceError::Unfinished { span });
        }
        let trust = contents.trust(span);
        if <F::Kind as Kind>::Cited::FIRST_HAND && trust < Some(Trust::Stored) {
            return Err(EvidenceError::NotFirstHand { span, origin: contents.said_by(span, entry) });
        }
        let trust = trust.unwrap_or(Trust::Hearsay);
        Ok(Evidence { numbering: contents.numbering, span, verified: None, trust, cited: PhantomData })
    }

    /// Takes what a person said as their consent. Whether they said yes, and to what, is for the program to see: the library
    /// sees to it that a person said it. O(log spans).
    ///
    /// # Errors
    /// [`EvidenceError`]: the span is not of this lane, not in the window, superseded, or no person said it.
    pub fn consent(&self, span: SpanId) -> Result<Consent, EvidenceError>
    where
        F::Kind: MayConsent<F>,
    {
        let contents = self.shared().lock();
        let entry = contents.entry(span)?;
        contents.in_lane(span, entry, F::AT.0)?;
        if entry.origin != Origin::Human {
            return Err(EvidenceError::NotHuman { span, origin: entry.origin });
        }
        contents.is_current(span, entry)?;
        Ok(Consent { numbering: contents.numbering, span, several: false })
    }
}

impl Recalled {
    /// Cites the text, which was verified against its SHA-256 and need not be in the window.
    ///
    /// # Errors
    /// [`EvidenceError`]: it is a summary or said by neither a tool nor a person, or it is not in the store yet.
    pub fn cite(&self) -> Result<Evidence<Verified>, EvidenceError> {
        let span = self.span();
        if self.trust < Trust::Stored {
            return Err(EvidenceError::NotFirstHand { span, origin: self.origin });
        }
        let digest = self.sha256().ok_or(EvidenceError::Unverified { span })?;
        Ok(Evidence {
            numbering: self.numbering,
            span,
            verified: Some(digest),
            trust: Trust::Stored,
            cited: PhantomData,
        })
    }
}

impl<C: ContextState, St> Window<C, St> {
    /// How far a span can be trusted as evidence; none where it does not exist or was removed for good. Of a summary, never
    /// above its weakest source (rule R20). O(log spans), of a summary O(sources).
    pub fn trust(&self, span: SpanId) -> Option<Trust> {
        self.shared.lock().trust(span)
    }
}

impl Contents {
    pub(crate) fn trust(&self, span: SpanId) -> Option<Trust> {
        let (mut trust, mut at) = (self.own_trust(span)?, span);
        // What was recalled is a tool's result, and no better than where it is from, which may be recalled as well.
        while let Some(source) = self.table.get(at).and_then(|entry| self.recalled_from(at, entry)) {
            trust = trust.min(self.own_trust(source).unwrap_or(Trust::Hearsay));
            at = source;
        }
        Some(trust)
    }

    /// How far a span could be trusted if it were recalled from nowhere.
    fn own_trust(&self, span: SpanId) -> Option<Trust> {
        if self.gone.contains_key(&span) {
            return None;
        }
        if let Some(derivation) = self.derivations.get(&span) {
            let sources = self.roots(span);
            let weakest = sources.iter().map(|source| self.trust(*source)).min().flatten();
            let backed = !derivation.sources.is_empty() && weakest >= Some(Trust::Stored);
            return Some(if backed { Trust::Digested } else { Trust::Hearsay });
        }
        let entry = self.table.get(span)?;
        Some(match (entry.origin, entry.residency) {
            (_, Residency::Unrecorded) => return None,
            _ if self.class(entry.lane) == Class::Rationale => Trust::Hearsay,
            // Something that the episode held, and nobody knows what.
            _ if self.is_recall(entry) && self.recalled_from(span, entry).is_none() => Trust::Hearsay,
            _ if self.exchanges.is_unfinished(span) => Trust::Hearsay,
            (Origin::Model | Origin::Notice, _) => Trust::Hearsay,
            (Origin::Human | Origin::Tool, Residency::Resident) => Trust::Seen,
            (Origin::Human | Origin::Tool, _) => Trust::Stored,
        })
    }

    /// Whether a span answers a [recall](Window::answer_recall): no look at the world, whatever it says of itself.
    pub(crate) fn is_recall(&self, entry: &Entry) -> bool {
        self.name(entry).is_some_and(|name| **name == *RECALL)
    }

    /// The span that a [recall](Window::answer_recall) showed a part of.
    pub(super) fn recalled_from(&self, span: SpanId, entry: &Entry) -> Option<SpanId> {
        self.is_recall(entry).then_some(())?;
        let subject = self.reads.subject(span)?;
        SpanId::parse(subject.split([':', '?']).next()?).filter(|source| *source < span)
    }

    /// Who said what a span shows.
    pub(crate) fn said_by<'c>(&'c self, mut span: SpanId, mut entry: &'c Entry) -> Origin {
        while let Some(source) = self.recalled_from(span, entry)
            && let Some(of) = self.table.get(source)
        {
            (span, entry) = (source, of);
        }
        entry.origin
    }

    /// Whether a span is in the window and nothing newer took its place.
    fn is_current(&self, span: SpanId, entry: &Entry) -> Result<(), EvidenceError> {
        match entry.residency {
            Residency::Resident => {}
            Residency::Unrecorded => return Err(SelectionError::Unrecorded { span }.into()),
            _ => return Err(EvidenceError::NotResident { span }),
        }
        self.is_newest(span)
    }

    fn is_newest(&self, span: SpanId) -> Result<(), EvidenceError> {
        match self.reads.superseded_by(span) {
            Some(by) => Err(EvidenceError::Stale { span, by }),
            None => Ok(()),
        }
    }

    /// Whether evidence still holds in this window.
    pub(crate) fn holds<T>(&self, evidence: &Evidence<T>) -> Result<(), EvidenceError> {
        let span = evidence.span;
        if evidence.numbering != self.numbering {
            return Err(EvidenceError::OtherWindow { span });
        }
        let entry = self.entry(span)?;
        match evidence.verified {
            Some(digest) if entry.digest == digest && !self.gone.contains_key(&span) => self.is_newest(span),
            Some(_) => Err(SelectionError::Discarded { span }.into()),
            None => self.is_current(span, entry),
        }?;
        // What it is an excerpt of may have been removed since.
        if evidence.trust >= Trust::Stored && self.trust(span) < Some(Trust::Stored) {
            return Err(EvidenceError::NotFirstHand { span, origin: self.said_by(span, entry) });
        }
        Ok(())
    }

    /// Whether consent was given in this window, in words that are still in it.
    pub(crate) fn stands(&self, consent: &Consent) -> Result<(), EvidenceError> {
        let span = consent.span;
        if consent.numbering != self.numbering {
            return Err(EvidenceError::OtherWindow { span });
        }
        self.is_current(span, self.entry(span)?)
    }
}
