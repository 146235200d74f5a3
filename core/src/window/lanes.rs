//! Typed handles: permits, never the text. Dropping one loses nothing.

use std::{fmt, marker::PhantomData, ops::Deref};

use super::{Discard, Evict, Externalize, Mutation, Redact, Reground, Restore, Selection, Shared, Step, Summarize};
use crate::{
    Content, ContextState, Field, NewSpan, PushError, SpanId, TokenCount,
    policy::{Governed, Permitted},
    rule::{
        Candidate, EntersWhile, Externalized, FirstHand, HoldsSummaries, LeavesFrom, MayBeDiscarded, MayBeRedacted,
        MayLeave, Open, Replaceable, SummarizedFrom, TakesText,
    },
    state::route,
    window::summarize::{Escalation, SummaryText},
};

/// One handle per lane of `C`, as fields (`lanes.schema`), in the state `S`: [`Open`] or [`Externalized`].
///
/// The handles are lent for as long as the window is borrowed; they cannot be moved out, copied or swapped, so a handle
/// of one state never outlives it.
#[must_use = "lanes are permits: push to them, externalize or prune; where only the commit was wanted, `drop` them"]
pub struct Lanes<'w, C: ContextState, St: 'w, S: 'w> {
    pub(super) shared: &'w Shared<St>,
    handles: C::Lanes<'w, St, S>,
}

impl<'w, C: ContextState, St, S> Lanes<'w, C, St, S> {
    pub(crate) fn lend(shared: &'w Shared<St>) -> Self {
        Self { shared, handles: C::lend(Lender { shared, state: PhantomData }) }
    }

    /// As [`Window::utilization`](crate::Window::utilization).
    pub fn utilization(&self) -> u64 {
        self.shared.lock().utilization
    }

    /// Pushes a span to the lane that the declared routing names.
    ///
    /// # Errors
    /// As [`Lane::push`], and when no lane takes such a span.
    pub fn route(&self, span: impl Into<NewSpan>) -> Result<SpanId, PushError>
    where
        S: EntersWhile<C>, // open lanes only
    {
        let span = span.into();
        let Some(lane) = route(C::LANES, &span) else {
            return Err(PushError::NoRoute { role: span.role.name(), tool: span.name });
        };
        push(self.shared, lane, span)
    }
}

impl<'w, C: ContextState + 'w, St> Lanes<'w, C, St, Open> {
    /// Writes every span that is not in the store yet: one atomic commit, durable, read back and compared (rule R2).
    /// Without new spans it costs nothing. O(new spans).
    ///
    /// When it fails, borrow the lanes again: all text is still in the window.
    ///
    /// # Errors
    /// [`CommitError`](crate::CommitError): the store failed, another owner was first, or a text is one that was redacted.
    pub fn externalize(self) -> Step<'w, St, Externalize<C>> {
        Step::new(self.shared, Externalize::new())
    }
}

impl<'w, C: ContextState, St, S> Deref for Lanes<'w, C, St, S> {
    type Target = C::Lanes<'w, St, S>;

    fn deref(&self) -> &Self::Target {
        &self.handles
    }
}

impl<C: ContextState, St, S> fmt::Debug for Lanes<'_, C, St, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lanes").field("state", &C::NAME).finish_non_exhaustive()
    }
}

/// Makes the handles; the derive calls it.
#[doc(hidden)]
pub struct Lender<'w, St, S> {
    shared: &'w Shared<St>,
    state: PhantomData<fn() -> S>,
}

impl<'w, St, S> Lender<'w, St, S> {
    #[doc(hidden)]
    pub fn lane<F: Field>(&self) -> Lane<'w, St, F, S> {
        Lane { shared: self.shared, marker: PhantomData }
    }
}

impl<St, S> fmt::Debug for Lender<'_, St, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lender")
    }
}

/// The handle of one lane: `F` is the field, `S` the state. As large as a reference.
pub struct Lane<'w, St, F, S> {
    shared: &'w Shared<St>,
    marker: PhantomData<fn() -> (F, S)>,
}

impl<St, F: Field, S> fmt::Debug for Lane<'_, St, F, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lane({})", F::AT.1)
    }
}

impl<'w, St, F: Field, S> Lane<'w, St, F, S> {
    pub(super) fn shared(&self) -> &'w Shared<St> {
        self.shared
    }

    /// Takes a span in: at once, in memory. [`externalize`](Lanes::externalize) makes it durable. O(its length).
    ///
    /// # Errors
    /// [`PushError`]: it is empty, larger than the whole budget, or cannot be counted.
    pub fn push(&self, span: impl Into<NewSpan>) -> Result<SpanId, PushError>
    where
        S: EntersWhile<F>,     // open lanes only
        F::Kind: TakesText<F>, // not into summaries
    {
        push(self.shared, F::AT.0, span.into())
    }

    /// Evicts spans to [pointers](crate::Pointer), which neighbours share: their tombstones are in the store before they leave
    /// (rules R1, R7, R8). One commit, O(spans named). A part of an exchange takes the others along, whatever their lanes; where
    /// one of them never leaves, none does (rule R16).
    pub fn evict(&self, spans: impl Into<Selection>) -> Step<'_, St, Evict>
    where
        S: LeavesFrom<F, F::Kind>, // externalized first
        F::Kind: MayLeave<F>,
        F::Kind: Candidate<F>,
    {
        Step::new(self.shared, Evict { lane: F::AT.0, selection: spans.into() })
    }

    /// Puts evicted spans back into the window, verified against their SHA-256, each with its whole exchange (rule R16).
    pub fn restore(&self, spans: impl Into<Selection>) -> Step<'_, St, Restore> {
        Step::new(self.shared, Restore { lane: Some(F::AT.0), spans: spans.into().ids })
    }

    /// Replaces spans by a summary that names them, in the derived lane `into` (rules R3 to R6). The sources stay in the
    /// store; [`reground`](Self::reground) brings them back.
    pub fn summarize<R: Field>(
        &self,
        sources: impl Into<Selection>,
        summary: SummaryText,
        into: &Lane<'w, St, R, S>,
    ) -> Step<'_, St, Summarize>
    where
        F::Kind: Replaceable<F>,       // nothing protected
        F::Kind: FirstHand<F>,         // no summary of a summary
        S: SummarizedFrom<F, F::Kind>, // externalized first
        R::Kind: HoldsSummaries<R>,
    {
        Step::new(
            self.shared,
            Summarize {
                lane: F::AT.0,
                sources: sources.into(),
                summary,
                into: R::AT.0,
                into_name: R::AT.1,
                same_window: std::ptr::eq(self.shared, into.shared),
                escalation: None,
            },
        )
    }

    /// Brings the sources of a summary back and takes the summary out (rule R4): the first-hand spans, however deep it is.
    pub fn reground(&self, summary: SpanId) -> Step<'_, St, Reground>
    where
        F::Kind: HoldsSummaries<F>,
    {
        Step::new(self.shared, Reground { lane: F::AT.0, summary })
    }

    /// Summarizes summaries after all: explicit, logged with its reason, and the window is
    /// [`Lossy`](crate::Fidelity::Lossy) from then on (rule R4).
    pub fn escalate(
        &self,
        summaries: impl Into<Selection>,
        summary: SummaryText,
        escalation: Escalation,
    ) -> Step<'_, St, Summarize>
    where
        F::Kind: HoldsSummaries<F>,
        S: SummarizedFrom<F, F::Kind>, // externalized first
        <F::State as Governed>::Policy: Permitted<Escalation, F, F::State>,
    {
        Step::new(
            self.shared,
            Summarize {
                lane: F::AT.0,
                sources: summaries.into(),
                summary,
                into: F::AT.0,
                into_name: F::AT.1,
                same_window: true,
                escalation: Some(escalation),
            },
        )
    }

    /// Removes a span for good, before this episode ever put it into the store (what another episode put there is for
    /// [`redact`](Self::redact)): a declared mutation with a reason and a recovery path,
    /// written first; the window is [`Lossy`](crate::Fidelity::Lossy) from then on (rule R23). For what must not be kept.
    pub fn discard(&self, span: SpanId, mutation: Mutation) -> Step<'_, St, Discard>
    where
        F::Kind: MayBeDiscarded<F>, // nothing protected
        <F::State as Governed>::Policy: Permitted<Mutation, F, F::State>,
    {
        Step::new(self.shared, Discard { lane: F::AT.0, span, mutation })
    }

    /// Removes texts from the window and from the store, for a secret that was externalized before anybody saw it: its blob
    /// is sealed in the same commit as the record of why, recall says so, and the window is
    /// [`Lossy`](crate::Fidelity::Lossy) from then on (rule R23). Every span of this episode with the same text goes with it;
    /// where one of them is in a protected lane, none does. A store may rewrite its whole file for it, so name at once what
    /// belongs together. Blobs are shared by all episodes of a store, so another episode that holds the same text finds it
    /// sealed as well; what comes again is refused by [`externalize`](Lanes::externalize) with its span, to be redacted as
    /// well. Tool names, subjects of reads, ids of calls, what stood around an imported list of blocks, and the SHA-256 of what was
    /// externalized stay on record. O(spans of the episode), and what the store takes.
    ///
    /// # Errors
    /// [`RedactError`](crate::RedactError): no such span, one of another lane or removed already; a protected lane has the same
    /// text; the commit failed.
    pub fn redact(&self, spans: impl Into<Selection>, mutation: Mutation) -> Step<'_, St, Redact>
    where
        F::Kind: MayBeRedacted<F>, // nothing protected
        <F::State as Governed>::Policy: Permitted<Mutation, F, F::State>,
    {
        Step::new(self.shared, Redact { lane: Some(F::AT.0), spans: spans.into().ids, mutation, authority: None })
    }

    /// The ids of this lane's spans whose text is in the window, oldest first. O(resident spans).
    pub fn resident(&self) -> Vec<SpanId> {
        self.shared.lock().resident_in(F::AT.0)
    }

    /// The ids of this lane's spans that are pointers now, oldest first. O(spans of the episode).
    pub fn evicted(&self) -> Vec<SpanId> {
        self.shared.lock().evicted_in(F::AT.0)
    }

    /// The token count of a span, as it was counted when it entered.
    pub fn tokens(&self, span: SpanId) -> Option<TokenCount> {
        self.shared.lock().table.get(span).filter(|entry| entry.lane == F::AT.0).map(super::table::Entry::count)
    }

    /// The text of a resident span.
    pub fn content(&self, span: SpanId) -> Option<Content> {
        self.shared.lock().table.get(span).filter(|entry| entry.lane == F::AT.0)?.content.clone()
    }
}

/// Counts once, outside the lock, then takes the span in.
fn push<St>(shared: &Shared<St>, lane: u16, span: NewSpan) -> Result<SpanId, PushError> {
    let count = match span.count(&*shared.counter) {
        Ok(count) => count,
        Err(source) => {
            let lane = shared.lock().lane(lane).map_or("?", crate::LaneSpec::name);
            return Err(PushError::Counter { lane, source });
        }
    };
    shared.lock().push(lane, span, count)
}

// A permit costs what a reference costs: the types add nothing.
const _: () = assert!(size_of::<Lane<'_, (), (), Externalized>>() == size_of::<&()>());
