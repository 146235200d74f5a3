//! Which of a run's messages the window has already: each enters once, also over several runs on one window.

use std::collections::BTreeMap;

use keepspan::{ContextState, Digest, JournalError, Origin, Role, Shown as What, SpanId, Window, store::AsyncStore};

use crate::piece::Piece;

/// The spans that are blocks of rig messages, oldest first.
#[derive(Debug)]
pub(crate) struct Known(Vec<Said>);

#[derive(Debug)]
struct Said {
    span: SpanId,
    /// None where only its tombstone is at hand.
    role: Option<Role>,
    digest: Digest,
}

impl Said {
    fn is(&self, (role, digest): (Role, Digest)) -> bool {
        self.digest == digest && self.role.is_none_or(|of| of == role)
    }
}

impl Known {
    /// What a window holds, or did. O(log of the episode).
    ///
    /// # Errors
    /// When the log cannot be read.
    pub(crate) async fn of<C: ContextState, St: AsyncStore>(window: &Window<C, St>) -> Result<Self, JournalError> {
        let left = window.tombstones_async().await?;
        let mut known: BTreeMap<_, _> =
            left.iter().map(|tombstone| (tombstone.span(), (None, tombstone.sha256()))).collect();
        for message in window.render() {
            // What the library wrote itself is no message of a run; a preamble is.
            if let What::Span(span) = message.shown()
                && (message.origin() != Origin::Notice || message.role() == Role::System)
            {
                known.insert(span, (Some(message.role()), Digest::of(message.content().as_bytes())));
            }
        }
        Ok(Self(known.into_iter().map(|(span, (role, digest))| Said { span, role, digest }).collect()))
    }

    pub(crate) fn add(&mut self, span: SpanId, (role, digest): (Role, Digest)) {
        self.0.push(Said { span, role: Some(role), digest });
    }

    pub(crate) fn renumber(&mut self, now: impl Fn(SpanId) -> SpanId) {
        self.0.iter_mut().for_each(|said| said.span = now(said.span));
    }

    /// The newest span with the text of this block.
    pub(crate) fn newest(&self, piece: Piece<'_>) -> Option<SpanId> {
        let key = piece.key();
        self.0.iter().rev().find(|said| said.is(key)).map(|said| said.span)
    }

    /// For each block of a new run, the span that it is, if any: the history in order, with whatever it leaves out between; the
    /// prompt only where the window ends with it unanswered, since the same words said again are another message.
    pub(crate) fn find(&self, history: &[Piece<'_>], prompt: &[Piece<'_>]) -> Vec<Option<SpanId>> {
        let mut rest = self.0.iter();
        let in_order = |piece: &Piece<'_>| {
            let (key, mut ahead) = (piece.key(), rest.clone());
            let found = ahead.find(|said| said.is(key))?;
            rest = ahead;
            Some(found.span)
        };
        let mut spans: Vec<_> = history.iter().map(in_order).collect();
        // A preamble enters after the prompt that it is first sent with.
        let newest: Vec<_> = rest.filter(|said| said.role != Some(Role::System)).collect();
        let unanswered = newest.len().checked_sub(prompt.len()).and_then(|from| newest.get(from..)).unwrap_or_default();
        let again =
            unanswered.len() == prompt.len() && unanswered.iter().zip(prompt).all(|(said, piece)| said.is(piece.key()));
        match again {
            true => spans.extend(unanswered.iter().map(|said| Some(said.span))),
            false => spans.extend(prompt.iter().map(|_| None)),
        }
        spans
    }
}
