//! What stands in the window where a span left (rule R8): the id that resolves, and what it was. Never an invitation
//! to run something again, and never an excerpt: a cut-off qualifier would be worse than none.

use std::fmt::{self, Write as _};

use crate::{Digest, SpanId, Tombstone};

/// The line a window shows in place of an evicted span that has no evicted neighbours. Built from its [`Tombstone`], never by
/// a program.
///
/// Neighbours of whatever kinds share one line, which names each protected span by its id and its lane and the others by
/// their range: `[s10 to s20: 11 spans, 5300 tokens kept in the store; schema s11 s13, refused s15; recall any of them by id]`.
/// No line names more than 32; neighbours beyond that share another. A summary keeps a line of its own, since it is shown at
/// the place of its sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer {
    span: SpanId,
    text: String,
}

impl Pointer {
    pub(crate) fn of(tombstone: &Tombstone) -> Self {
        let span = tombstone.span();
        let text = Line {
            span,
            lane: tombstone.lane(),
            name: tombstone.name(),
            tokens: tombstone.tokens(),
            digest: tombstone.sha256(),
            sources: tombstone.derivation(),
        }
        .to_string();
        Self::line(span, text)
    }

    /// The pointer to one span, worded already.
    pub(crate) fn line(span: SpanId, text: String) -> Self {
        Self { span, text }
    }

    /// The span it resolves to, through [`Window::recall`](crate::Window::recall).
    pub fn span(&self) -> SpanId {
        self.span
    }

    /// The line itself.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The wording of a pointer to one span.
pub(crate) struct Line<'a> {
    pub(crate) span: SpanId,
    pub(crate) lane: &'a str,
    pub(crate) name: Option<&'a str>,
    pub(crate) tokens: u64,
    pub(crate) digest: Digest,
    pub(crate) sources: &'a [SpanId],
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{} {}", self.span, self.lane)?;
        if let Some(name) = self.name {
            f.write_str(" from ")?;
            name.chars().take(LONGEST_NAME).try_for_each(|c| f.write_char(plain(c)))?;
        }
        if !self.sources.is_empty() {
            write!(f, " of {}", Ids(self.sources))?;
        }
        write!(f, ": {} tokens kept in the store, sha256 {}; recall {}]", self.tokens, self.digest.short(), self.span)
    }
}

/// The wording of a pointer that neighbours share.
pub(crate) struct Fold<'a> {
    pub(crate) first: SpanId,
    pub(crate) last: SpanId,
    pub(crate) spans: u64,
    pub(crate) tokens: u64,
    /// The protected spans among them, by lane.
    pub(crate) named: Vec<(&'a str, &'a [SpanId])>,
}

impl fmt::Display for Fold<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, last, spans, tokens, named } = self;
        write!(f, "[{first} to {last}: {spans} spans, {tokens} tokens kept in the store")?;
        for (at, (lane, ids)) in named.iter().enumerate() {
            write!(f, "{} {lane}", if at == 0 { ';' } else { ',' })?;
            ids.iter().try_for_each(|id| write!(f, " {id}"))?;
        }
        f.write_str("; recall any of them by id]")
    }
}

/// Ids as `s3, s4, s9`.
pub(crate) struct Ids<'a>(pub(crate) &'a [SpanId]);

impl fmt::Display for Ids<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().enumerate().try_for_each(|(at, id)| write!(f, "{}{id}", if at == 0 { "" } else { ", " }))
    }
}

/// The most that a line of ours shows of a tool's name, in characters: no provider takes more, and a model can make up one
/// of any length.
pub(crate) const LONGEST_NAME: usize = 128;

/// Somebody else's words inside a line of ours: without what could end the line or the brackets.
pub(crate) struct Plain<'a>(pub(crate) &'a str);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| f.write_char(plain(c)))
    }
}

/// A space in place of what [`Plain`] leaves out.
pub(crate) fn plain(c: char) -> char {
    if c.is_control() || matches!(c, '[' | ']' | '\u{2028}' | '\u{2029}') { ' ' } else { c }
}
