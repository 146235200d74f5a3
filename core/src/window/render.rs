//! Render: the messages a model would be sent, in the order the spans entered, pointers and summaries in place.

use std::{convert::Infallible, iter::Peekable, sync::Arc};

use super::{
    contents::Contents,
    relations::ResultState,
    table::{Entry, Residency},
};
use crate::{Content, Origin, Role, SpanId, span::Part};

/// One message of a rendered window.
#[derive(Clone, Debug)]
pub struct Message {
    role: Role,
    origin: Origin,
    lane: &'static str,
    name: Option<Arc<str>>,
    content: Content,
    tokens: u32,
    shown: Shown,
    seal_intact: Option<bool>,
    result: Option<ResultState>,
}

/// What a rendered message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shown {
    /// A span's own text.
    Span(SpanId),
    /// A [pointer](crate::Pointer) to every span from the first to the last, which names those of protected lanes.
    Pointer(SpanId, SpanId),
    /// A summary, at the place of its first source.
    Summary(SpanId),
    /// The notice of a span that was discarded.
    Discarded(SpanId),
}

impl Message {
    /// The role under which it is sent.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Who said it; a pointer is a [notice](Origin::Notice).
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// The lane it belongs to; for a pointer that neighbours share, that of its first span.
    pub fn lane(&self) -> &'static str {
        self.lane
    }

    /// The tool it came from.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The text or bytes.
    pub fn content(&self) -> &Content {
        &self.content
    }

    /// Its tokens, as counted once.
    pub fn tokens(&self) -> u32 {
        self.tokens
    }

    /// What it is, with the ids that resolve it.
    pub fn shown(&self) -> Shown {
        self.shown
    }

    /// Of a [sealed](crate::NewSpan::sealed) span, whether everything before it is as it was when it entered; `None` for any other.
    /// A provider rejects a signature over what changed: where this is `false`, leave the block out whole and keep the text
    /// beside it. What comes back heals nothing.
    pub fn seal_intact(&self) -> Option<bool> {
        self.seal_intact
    }

    /// Of a result, what it is to its call; `None` for what is no result of a call, or not shown itself.
    pub fn result(&self) -> Option<ResultState> {
        self.result
    }
}

impl Contents {
    pub(crate) fn resident_in(&self, lane: u16) -> Vec<SpanId> {
        self.table.resident().filter(|(_, entry)| entry.lane == lane).map(|(span, _)| span).collect()
    }

    pub(crate) fn evicted_in(&self, lane: u16) -> Vec<SpanId> {
        let wanted = |entry: &Entry| entry.lane == lane && entry.residency == Residency::Evicted;
        self.table.iter().filter(|(_, entry)| wanted(entry)).map(|(span, _)| span).collect()
    }

    pub(crate) fn render(&self) -> Vec<Message> {
        // Most windows show fewer messages than spans, so a large one starts with a guess.
        let mut messages = Vec::with_capacity(usize::try_from(self.table.len()).unwrap_or(usize::MAX).min(1_024));
        let Ok(()) = self.each_shown(|shown, entry, tokens| {
            messages.extend(self.message(shown, entry, tokens));
            Ok::<_, Infallible>(())
        });
        messages
    }

    /// Gives what is shown, in order: with the entry of its first span and, of a pointer, the tokens.
    pub(crate) fn each_shown<'c, E>(
        &'c self,
        mut each: impl FnMut(Shown, &'c Entry, u32) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut summaries = self.anchors.iter().map(|(anchor, summary)| (*anchor, *summary)).peekable();
        let mut pointers = self.pointers.iter().map(|(first, run)| (first, (run.last, run.tokens))).peekable();
        for (span, entry) in self.table.iter() {
            if let Some((shown, entry, tokens)) = at(&mut summaries, span).and_then(|summary| self.summary(summary)) {
                each(shown, entry, tokens)?;
            }
            let pointer = at(&mut pointers, span);
            match (entry.residency, pointer) {
                _ if self.is_summary(span, entry) => {}
                (Residency::Resident, _) => each(Shown::Span(span), entry, 0)?,
                (Residency::Evicted, Some((last, tokens))) => each(Shown::Pointer(span, last), entry, tokens)?,
                (Residency::Discarded, _) => each(Shown::Discarded(span), entry, 0)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn is_summary(&self, span: SpanId, entry: &Entry) -> bool {
        // Most windows have few summaries: ask the map only for an entry that could be one.
        entry.origin == Origin::Model && !self.derivations.is_empty() && self.derivations.contains_key(&span)
    }

    fn summary(&self, summary: SpanId) -> Option<(Shown, &Entry, u32)> {
        let entry = self.table.get(summary)?;
        match entry.residency {
            Residency::Resident => Some((Shown::Summary(summary), entry, 0)),
            Residency::Evicted => {
                let run = self.pointers.get(summary)?;
                Some((Shown::Pointer(summary, run.last), entry, run.tokens))
            }
            Residency::Discarded => Some((Shown::Discarded(summary), entry, 0)),
            _ => None,
        }
    }

    fn message(&self, shown: Shown, entry: &Entry, tokens: u32) -> Option<Message> {
        match shown {
            Shown::Span(span) => {
                let mut message = self.text(entry, shown)?;
                if entry.exchange || self.exchanges.is_orphan(span) {
                    self.mark(span, &mut message);
                }
                Some(message)
            }
            Shown::Summary(_) => self.text(entry, shown),
            Shown::Pointer(first, last) => {
                Some(self.written(entry, self.pointer_text(first, last).into(), tokens, shown))
            }
            Shown::Discarded(span) => {
                let gone = self.gone.get(&span)?;
                Some(self.written(entry, gone.notice.clone().into(), gone.count.tokens(), shown))
            }
        }
    }

    /// Says what a span is in its exchange; most are in none.
    fn mark(&self, span: SpanId, message: &mut Message) {
        let sealed = self.exchanges.part(span).and_then(Part::seal);
        message.seal_intact = sealed.map(|_| self.seals.is_intact(span));
        message.result = self.exchanges.result(span);
    }

    fn text(&self, entry: &Entry, shown: Shown) -> Option<Message> {
        Some(Message {
            role: entry.role,
            origin: entry.origin,
            lane: self.lane_name(entry),
            name: self.name(entry).cloned(),
            content: entry.content.clone()?,
            tokens: entry.tokens,
            shown,
            seal_intact: None,
            result: None,
        })
    }

    /// What the library itself says in a span's place, under the span's own role so that roles still alternate.
    fn written(&self, entry: &Entry, content: Content, tokens: u32, shown: Shown) -> Message {
        Message {
            role: entry.role,
            origin: Origin::Notice,
            lane: self.lane_name(entry),
            name: self.name(entry).cloned(),
            content,
            tokens,
            shown,
            seal_intact: None,
            result: None,
        }
    }
}

/// The value at `span`, from a list in order.
fn at<T>(list: &mut Peekable<impl Iterator<Item = (SpanId, T)>>, span: SpanId) -> Option<T> {
    list.next_if(|(at, _)| *at == span).map(|(_, value)| value)
}
