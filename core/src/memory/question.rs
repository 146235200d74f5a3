//! What can be asked, and what each question needs to read.

use std::{fmt, sync::Arc};

use super::Doubt;
use crate::{
    Content, Digest, SpanId,
    span::Part,
    window::{
        contents::Contents,
        table::{Entry, Residency},
    },
};

/// A question to [`Window::ask`](crate::Window::ask): did the window ever hold this?
pub struct Question(What);

enum What {
    Span(SpanId),
    Bytes(Digest),
    Text(Test),
    Tool { name: Arc<str>, call: Option<Arc<str>>, result: Option<Test> },
}

pub(super) type Test = Box<dyn Fn(&str) -> bool + Send + Sync>;

impl Question {
    /// This span. O(1).
    pub fn span(span: SpanId) -> Self {
        Self(What::Span(span))
    }

    /// Exactly this text or these bytes, as one span. O(spans), no text is read; what is not in the store yet is hashed.
    pub fn exact(content: impl Into<Content>) -> Self {
        Self::digest(Digest::of(content.into().as_bytes()))
    }

    /// As [`exact`](Self::exact), by the SHA-256 alone.
    pub fn digest(digest: Digest) -> Self {
        Self(What::Bytes(digest))
    }

    /// This text anywhere in a span, its case as it is. Reads every text of the episode: O(its bytes), of which no more than
    /// 64 spans come from the store at a time.
    pub fn text(part: impl Into<String>) -> Self {
        let part = part.into();
        Self(What::Text(Box::new(move |text| text.contains(&part))))
    }

    /// A result of this tool, pushed as [`NewSpan::tool`](crate::NewSpan::tool). O(spans), no text is read.
    pub fn tool(name: impl Into<Arc<str>>) -> Self {
        Self(What::Tool { name: name.into(), call: None, result: None })
    }

    /// The result of one call of this tool, by the provider's id of the call. O(spans), no text is read.
    pub fn call(tool: impl Into<Arc<str>>, call: impl Into<Arc<str>>) -> Self {
        Self(What::Tool { name: tool.into(), call: Some(call.into()), result: None })
    }

    /// A result of this tool whose text passes `test`. Reads the results of the tool, as [`text`](Self::text) does.
    pub fn result(tool: impl Into<Arc<str>>, test: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self(What::Tool { name: tool.into(), call: None, result: Some(Box::new(test)) })
    }

    /// What the window alone can say.
    pub(super) fn look(&self, contents: &Contents) -> Look {
        let mut look = Look::default();
        for (span, entry) in self.range(contents) {
            match &self.0 {
                What::Span(_) => look.matched.push(span),
                What::Bytes(digest) if holds(entry, digest) => look.matched.push(span),
                What::Bytes(_) => {}
                What::Text(_) => look.read(contents, span, entry),
                What::Tool { name, call, result } => match link(contents, span, entry, name, call.as_ref()) {
                    Link::Same if result.is_some() => look.read(contents, span, entry),
                    Link::Same => look.matched.push(span),
                    Link::Unknown => look.doubt(Doubt::Unlinked { span }),
                    Link::Other => {}
                },
            }
        }
        look
    }

    /// What has to hold of the texts to read.
    pub(super) fn test(&self) -> Option<&Test> {
        match &self.0 {
            What::Text(test) => Some(test),
            What::Tool { result, .. } => result.as_ref(),
            What::Span(_) | What::Bytes(_) => None,
        }
    }

    /// Whether no second span can match.
    pub(super) fn is_unique(&self) -> bool {
        matches!(self.0, What::Span(_))
    }

    fn range<'c>(&self, contents: &'c Contents) -> Box<dyn Iterator<Item = (SpanId, &'c Entry)> + 'c> {
        match self.0 {
            What::Span(span) => Box::new(contents.table.get(span).map(|entry| (span, entry)).into_iter()),
            _ => Box::new(contents.table.iter()),
        }
    }
}

impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Question").finish_non_exhaustive()
    }
}

/// What the window knows, and what it must read to know more.
#[derive(Default)]
pub(super) struct Look {
    pub(super) matched: Vec<SpanId>,
    /// Texts that are in the window.
    pub(super) here: Vec<(SpanId, Content)>,
    /// Texts that are in the store.
    pub(super) stored: Vec<(SpanId, Digest)>,
    pub(super) doubt: Option<Doubt>,
}

impl Look {
    fn doubt(&mut self, doubt: Doubt) {
        self.doubt.get_or_insert(doubt);
    }

    fn read(&mut self, contents: &Contents, span: SpanId, entry: &Entry) {
        match &entry.content {
            // The record is not complete, which is the doubt.
            _ if entry.residency == Residency::Unrecorded || contents.gone.contains_key(&span) => {}
            _ if !entry.text => self.doubt(Doubt::NotText { span }),
            Some(content) => self.here.push((span, content.clone())),
            None => self.stored.push((span, entry.digest)),
        }
    }
}

fn holds(entry: &Entry, digest: &Digest) -> bool {
    match &entry.content {
        _ if entry.durable => entry.digest == *digest,
        Some(content) => Digest::of(content.as_bytes()) == *digest,
        None => false,
    }
}

/// Whether a span is a result of the tool, and of the call.
enum Link {
    Same,
    Other,
    /// What it belongs to is not on record.
    Unknown,
}

fn link(contents: &Contents, span: SpanId, entry: &Entry, tool: &Arc<str>, call: Option<&Arc<str>>) -> Link {
    let asked = |id: &Arc<str>| call.is_none_or(|call| call == id);
    match (contents.exchanges.part(span), contents.name(entry)) {
        (Some(part), _) if part.calls().iter().any(|id| asked(id) && is_open(contents, span, id)) => Link::Unknown,
        // What the library says in a result's place is none.
        (Some(Part::Lost(..)), _) => Link::Other,
        (Some(Part::Answers(id) | Part::Interim(id) | Part::Orphan(id)), _) if !asked(id) => Link::Other,
        (Some(Part::Answers(_) | Part::Interim(_) | Part::Orphan(_)), None) => Link::Unknown,
        (part, Some(name)) if name == tool => match part {
            Some(Part::Answers(_) | Part::Interim(_) | Part::Orphan(_)) => Link::Same,
            _ if call.is_none() => Link::Same,
            _ => Link::Unknown,
        },
        _ => Link::Other,
    }
}

/// Whether the call that the turn `span` makes has no final result: an abandoned one may have taken effect.
fn is_open(contents: &Contents, span: SpanId, call: &Arc<str>) -> bool {
    let answers = |other: &SpanId| matches!(contents.exchanges.part(*other), Some(Part::Answers(id)) if id == call);
    !contents.exchanges.unit(span).is_some_and(|unit| unit.iter().any(answers))
}
