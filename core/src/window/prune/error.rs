//! Why a proposal, a pass or a fallback was refused. Whatever it says, the window is as it was.

use crate::{
    CommitError, CounterError, SelectionError, SpanId, SummarizeError, SummaryTextError, gate::Held, tool::AnswerError,
};

/// Why a model's answer is no proposal (rule R15).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProposalError {
    /// It entered after the draft that was decided by.
    #[error(
        "{span} entered after the list that was decided by, so the model has not seen it: leave it out, and what leaves with it"
    )]
    Newer {
        /// The span.
        span: SpanId,
    },
    /// The answer has not the form of the tool.
    #[error(transparent)]
    Answer(#[from] AnswerError),
    /// The span does not exist, is no longer there, or is not in the store.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// A name that is no id.
    #[error("`{name}` is no span id: name one of the {offered} that were offered, as `s17`")]
    NoId {
        /// What was named, shortened.
        name: String,
        /// How many ids were offered.
        offered: usize,
    },
    /// A name that is no lane.
    #[error("`{name}` is no lane: name one of {offered}")]
    NoLane {
        /// What was named, shortened.
        name: String,
        /// The lanes that are offered.
        offered: String,
    },
    /// A lane whose spans a model may not choose.
    #[error("`{name}` is not offered to a model, whatever it asks for: name one of {offered}")]
    LaneNotOffered {
        /// The lane.
        name: String,
        /// The lanes that are offered.
        offered: String,
    },
    /// The span's lane never lets spans leave.
    #[error("{span} is in `{lane}`, whose spans never leave: leave it out")]
    Kept {
        /// The span.
        span: SpanId,
        /// The lane.
        lane: &'static str,
    },
    /// The span is what pruning itself wrote (rule R13).
    #[error("{span} is in `{lane}`, which holds what pruning wrote: no pass takes it, only a fallback; leave it out")]
    NeverCandidate {
        /// The span.
        span: SpanId,
        /// The lane.
        lane: &'static str,
    },
    /// The span is among the newest tokens.
    #[error("{span} is among the newest {keep} tokens, which the budget keeps: leave it out")]
    Recent {
        /// The span.
        span: SpanId,
        /// How many tokens are kept.
        keep: u64,
    },
    /// An id is given twice in one list.
    #[error("{span} is named twice: name each span once")]
    Twice {
        /// The span.
        span: SpanId,
    },
    /// A span is to leave in two ways.
    #[error("{span} is in two parts of the proposal: a span is evicted, or summarized once")]
    Overlap {
        /// The span.
        span: SpanId,
    },
    /// A summary as the source of a summary (rule R4).
    #[error("{span} is in `{lane}` and a summary itself: a summary is not summarized again; re-ground it, or evict it")]
    DerivedSource {
        /// The span.
        span: SpanId,
        /// The lane.
        lane: &'static str,
    },
    /// Protected text as the source of a summary (rule R3).
    #[error(
        "{span} is in `{lane}`, which is kept word for word: a summary cannot stand in for it; evict it, or leave it"
    )]
    ProtectedSource {
        /// The span.
        span: SpanId,
        /// The lane.
        lane: &'static str,
    },
    /// There is nowhere to put a summary.
    #[error("the struct has no `#[derived]` lane for a summary: add one, or offer no summary tool")]
    NoDerivedLane,
    /// The text is no summary (rule R6).
    #[error(transparent)]
    Summary(#[from] SummaryTextError),
}

/// Why a proposal was not applied. What deciding took is spent all the same.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// The proposal was made for another window, whose spans have the same ids.
    #[error("the proposal was made for another window: apply it there")]
    OtherWindow,
    /// The window changed after the proposal was made.
    #[error("the window changed after the proposal was made: parse an answer to the new pass")]
    Outdated,
    /// A span may not leave, or not in this way.
    #[error(transparent)]
    Invalid(#[from] ProposalError),
    /// The window would not be smaller.
    #[error(
        "the request would take {after} tokens and takes {before}: pointers, summaries and the rationale outweigh what leaves; nothing was applied: name larger spans, or write less"
    )]
    NotSmaller {
        /// What it takes, in tokens.
        before: u64,
        /// What it would take.
        after: u64,
    },
    /// A summary is no smaller than its sources (rule R6).
    #[error(transparent)]
    Summary(#[from] SummarizeError),
    /// A pointer or text could not be counted.
    #[error("a pointer or a text could not be counted: {0}; mend the counter, then apply again")]
    Counter(#[from] CounterError),
    /// The pass could not be committed.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl From<SelectionError> for ApplyError {
    fn from(error: SelectionError) -> Self {
        Self::Invalid(error.into())
    }
}

/// Why a fallback freed nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FallBackError {
    /// Even without all that may leave, the request is too large.
    #[error(
        "unfittable: {needed} tokens are left when all that may leave has left, and the limit is {budget}; of these, fixed {fixed}, {held}: \
         raise the budget, close what is pending or abandon its calls, split the newest span, or declare less as instruction or pinned"
    )]
    Unfittable {
        /// What the request would still take, in tokens.
        needed: u64,
        /// What it may take.
        budget: u64,
        /// The fixed part of it.
        fixed: u64,
        /// What stays, and why.
        held: Held,
    },
    /// There is no budget to get below.
    #[error("no budget: give one by `#[context(budget = ..)]` or `Episode::budget`; without one nothing must leave")]
    NoBudget,
    /// A template's summary has nowhere to go.
    #[error("the struct has no `#[derived]` lane for the summary: add one, or fall back to `OldestFirst`")]
    NoDerivedLane,
    /// The change could not be made or committed.
    #[error(transparent)]
    Apply(ApplyError),
    /// The change could not be committed.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl From<ApplyError> for FallBackError {
    fn from(error: ApplyError) -> Self {
        match error {
            ApplyError::Commit(error) => Self::Commit(error),
            ApplyError::Invalid(ProposalError::NoDerivedLane) => Self::NoDerivedLane,
            other => Self::Apply(other),
        }
    }
}

/// Why a draft cannot be gone on with. What was pushed meanwhile is in the window, and nothing else happened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Stale {
    /// The draft is of another window, whose spans have the same ids.
    #[error("the draft is of another window: go on with it there")]
    OtherWindow,
    /// More than pushes happened meanwhile: spans left or came back, or the policy changed.
    #[error(
        "since the draft was made the window changed {changes} times by more than pushes, so it was decided by what is not \
         there any more: ask the gate again"
    )]
    Changed {
        /// How many such changes there were.
        changes: u64,
    },
}
