//! Where the text of one span is.

use crate::{
    Pointer, SpanId,
    window::{contents::Contents, table::Residency},
};

/// Where a span's text is now.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Whereabouts {
    /// In the window.
    Resident {
        /// The span.
        span: SpanId,
    },
    /// In the store only: [`recall`](crate::Window::recall) brings it.
    Evicted {
        /// The span.
        span: SpanId,
        /// The line that names it, to show to a model.
        pointer: Pointer,
    },
    /// In the store only, and a summary stands in its place: [`recall`](crate::Window::recall) brings the text itself.
    Summarized {
        /// The span.
        span: SpanId,
        /// The summary: weaker evidence than the span.
        by: SpanId,
        /// The line that names the span, to show to a model.
        pointer: Pointer,
    },
    /// Nowhere: a discard or a redaction removed it (rule R23).
    Discarded {
        /// The span.
        span: SpanId,
        /// Why it was removed.
        reason: String,
        /// What to do if it is needed.
        recovery: String,
    },
}

impl Whereabouts {
    /// The span.
    pub fn span(&self) -> SpanId {
        match self {
            Self::Resident { span }
            | Self::Evicted { span, .. }
            | Self::Summarized { span, .. }
            | Self::Discarded { span, .. } => *span,
        }
    }

    /// Where `span` is; `None` when it never entered, or nothing of it is on record. O(summaries) where one took its place,
    /// O(1) else.
    pub(crate) fn of(contents: &Contents, span: SpanId) -> Option<Self> {
        if let Some(gone) = contents.gone.get(&span) {
            return Some(Self::Discarded { span, reason: gone.reason.clone(), recovery: gone.recovery.clone() });
        }
        let pointer = || Pointer::line(span, contents.pointer_text(span, span));
        Some(match contents.table.get(span)?.residency {
            Residency::Resident => Self::Resident { span },
            Residency::Evicted => Self::Evicted { span, pointer: pointer() },
            Residency::Replaced | Residency::Retired => match replaced_by(contents, span) {
                Some(by) => Self::Summarized { span, by, pointer: pointer() },
                None => Self::Evicted { span, pointer: pointer() },
            },
            Residency::Discarded | Residency::Unrecorded => return None,
        })
    }
}

/// The summary that stands for `span`, whatever was summarized again on the way to it; `None` when it was re-grounded.
fn replaced_by(contents: &Contents, span: SpanId) -> Option<SpanId> {
    let covers = |sources: &[SpanId]| sources.binary_search(&span).is_ok();
    let (&summary, _) = contents.derivations.iter().rev().find(|(_, of)| covers(&of.sources))?;
    match contents.table.get(summary)?.residency {
        Residency::Retired => replaced_by(contents, summary),
        _ => Some(summary),
    }
}
