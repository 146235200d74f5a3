//! One error an operation. Whatever it says, the window is as it was.

use std::sync::Arc;

use crate::{
    BudgetError, ContextState, CounterError, Digest, EpisodeId, JournalError, LaneChange, PolicyError, SpanId, Window,
    action::Denial, pointer::Ids, store::StoreError, tool::RecallCallError,
};

/// Why a commit did not happen, or could not be confirmed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// The store refused or failed.
    #[error(transparent)]
    Store(StoreError),
    /// Another owner of the episode wrote first: it resumed the episode, or two processes opened it.
    #[error(
        "another owner of episode `{episode}` wrote record {found} first, where this window would have written {expected}: \
         nothing of this window is lost, and nothing more of it is written; take what is not in the store from \
         `Window::unsaved`, and resume the episode"
    )]
    Superseded {
        /// The episode.
        episode: EpisodeId,
        /// The number of the record that this window would have written.
        expected: u64,
        /// The number of the other's last record.
        found: u64,
    },
    /// The store accepted a span and gave other bytes back (rule R2): the span stays in the window.
    #[error("{span} was written and came back changed (blob {digest}): it stays in the window; check the store")]
    ReadBack {
        /// The span.
        span: SpanId,
        /// SHA-256 of its bytes.
        digest: Digest,
    },
    /// The text of a span was redacted, in this or another episode, and the store neither takes nor gives it any more (rule
    /// R23).
    #[error(
        "the text of {span} was redacted, in this or another episode of the store, which does not have it any more (blob \
         {digest}): redact {span} as well, which puts a notice in its place, then run the step again"
    )]
    Sealed {
        /// The span.
        span: SpanId,
        /// SHA-256 of its bytes.
        digest: Digest,
    },
    /// A signature that the commit claims is held (rule R19): of use to whoever claims it, who is told more.
    #[error(
        "what this claims is claimed already ({signature}), and nothing was written: an attempt is begun once and ended once; ask for a permit, which says what became of it"
    )]
    Claimed {
        /// The signature of one attempt.
        signature: Digest,
    },
    /// An earlier commit was cancelled or lost its answer, so only the store knows whether it happened.
    #[error(
        "an earlier step of episode `{episode}` was cancelled or got no answer, so only the store knows whether it happened: text and recall are intact; `Window::recover` asks the store and goes on"
    )]
    Interrupted {
        /// The episode.
        episode: EpisodeId,
    },
    /// Another step of the same window is committing.
    #[error("another step of episode `{episode}` is running: wait for it, then run this one")]
    Busy {
        /// The episode.
        episode: EpisodeId,
    },
    /// A record could not be encoded.
    #[error("a record could not be encoded: {0}; this is a defect of keepspan, please report it")]
    Record(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl From<StoreError> for CommitError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Conflict { episode, expected, found } => {
                Self::Superseded { episode, expected, found: found.saturating_sub(1) }
            }
            StoreError::Claimed { signature, .. } => Self::Claimed { signature },
            other => Self::Store(other),
        }
    }
}

/// Why a window did not open.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The name is empty or longer than [`EpisodeId::MAX_BYTES`].
    #[error("an episode's name has 1 to {} bytes and this one has {bytes}: choose another", EpisodeId::MAX_BYTES)]
    Name {
        /// Its length in bytes.
        bytes: usize,
    },
    /// The store has records of this episode.
    #[error(
        "episode `{episode}` has {records} records in this store already: resume it with `Window::resume`, or choose a name of its own for each run"
    )]
    Exists {
        /// The episode.
        episode: EpisodeId,
        /// The records it has.
        records: u64,
    },
    /// The budget cannot work (rule R12).
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// The struct or the budget breaks the struct's policy.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The first commit failed.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// Why a window was not closed: it is in here, with all its text.
#[derive(thiserror::Error)]
#[error("the window was not closed: {error}; it is still there, `into_window`")]
pub struct CloseError<C: ContextState, St> {
    pub(crate) window: Box<Window<C, St>>,
    #[source]
    pub(crate) error: CommitError,
}

impl<C: ContextState, St> std::fmt::Debug for CloseError<C, St> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CloseError").field("window", &self.window).field("error", &self.error).finish()
    }
}

impl<C: ContextState, St> CloseError<C, St> {
    /// What the store said.
    pub fn error(&self) -> &CommitError {
        &self.error
    }

    /// The window, as it was.
    pub fn into_window(self) -> Window<C, St> {
        *self.window
    }
}

/// Why an episode was not resumed, or a window not recovered. Nothing was written, but for a
/// [`Commit`](ResumeError::Commit) whose answer was lost.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// The name, the budget or the policy, as for [`Window::open`](crate::Window::open).
    #[error(transparent)]
    Opening(#[from] OpenError),
    /// The log does not check out.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The lanes changed since the episode was written.
    #[error(
        "the lanes of episode `{episode}` are not those of this struct: {}; resume with the struct that wrote it, or say what \
         became of each lane with `Episode::migrate`",
        listed(changes)
    )]
    OtherLanes {
        /// The episode.
        episode: EpisodeId,
        /// How they differ.
        changes: Vec<LaneChange>,
    },
    /// The counter is another than the episode was opened with (rule R25).
    #[error(
        "the episode was counted with another counter, which gave {recorded} tokens for a text that this one gives {found}: \
         resume with the counter that it was opened with"
    )]
    Counter {
        /// Tokens that the episode's counter gave for a fixed text.
        recorded: u32,
        /// Tokens that this one gives.
        found: u32,
    },
    /// The text of a span in the window is missing or damaged.
    #[error("{span} is in the window, and its text cannot be read: {source}")]
    Text {
        /// The span.
        span: SpanId,
        /// What the store said.
        source: StoreError,
    },
    /// A pointer or a notice could not be counted.
    #[error("a pointer could not be counted: {0}; mend the counter, then resume again")]
    Counting(#[from] CounterError),
    /// The record of a resumption could not be committed.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// One after the other.
fn listed(changes: &[LaneChange]) -> String {
    changes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Why a span did not enter.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PushError {
    /// It has no content.
    #[error(
        "`{lane}`: an empty span says nothing and could not be told from a lost one: leave it out, or push a note; of a turn \
         that only calls tools, push the calls"
    )]
    Empty {
        /// The lane.
        lane: &'static str,
    },
    /// It alone is larger than the budget.
    #[error(
        "`{lane}`: the span has {tokens} tokens and the budget leaves {budget} for all: split it, or raise the budget"
    )]
    LargerThanBudget {
        /// The lane.
        lane: &'static str,
        /// Its tokens.
        tokens: u64,
        /// What the budget leaves for spans, in tokens: the limit less the fixed part.
        budget: u64,
    },
    /// A step of the window is committing.
    #[error("`{lane}`: a step of this window is running: wait for it, then push")]
    Busy {
        /// The lane.
        lane: &'static str,
    },
    /// The token counter failed.
    #[error("`{lane}`: the span could not be counted: {source}; split it, or count with another counter")]
    Counter {
        /// The lane.
        lane: &'static str,
        /// What the counter said.
        source: CounterError,
    },
    /// No lane takes such a span.
    #[error("no lane takes a span of role `{role}`{}: give one lane `otherwise`, or push to a lane", tool.as_ref().map(|tool| format!(" from tool `{tool}`")).unwrap_or_default())]
    NoRoute {
        /// The span's role.
        role: &'static str,
        /// The tool it came from.
        tool: Option<Arc<str>>,
    },
    /// More than 65,535 different tool names.
    #[error("`{name}` is one tool name too many (65,535 are kept): give ids as content, not as tool names")]
    TooManyNames {
        /// The name.
        name: Arc<str>,
    },
    /// A result without its call.
    #[error(
        "`{lane}`: no open call has the id `{call}`: push the model's turn first, with `NewSpan::calls`, or import the result as \
         an orphan, with `NewSpan::orphan`"
    )]
    Unasked {
        /// The lane.
        lane: &'static str,
        /// The provider's id of the call.
        call: Arc<str>,
    },
    /// Something else than what the model said, as a part of its turn or as sealed.
    #[error(
        "`{lane}`: only what the model said is a part of its turn, or sealed: push it as `NewSpan::model`, and results without \
         either"
    )]
    NotSaid {
        /// The lane.
        lane: &'static str,
    },
    /// The handle's lane is none of the window's.
    #[error("this lane does not belong to the window's state struct: derive `ContextState`, do not write it by hand")]
    NoLane,
}

/// Why spans could not be chosen for a transition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectionError {
    /// No id was given.
    #[error("no span was named: give at least one id")]
    Empty,
    /// An id was given twice.
    #[error("{span} is named twice: name each span once")]
    Twice {
        /// The span.
        span: SpanId,
    },
    /// No such span.
    #[error(
        "{span} does not exist: this episode has {spans} spans so far, numbered from s1; an id belongs to one episode"
    )]
    Unknown {
        /// The id.
        span: SpanId,
        /// How many spans there are.
        spans: u64,
    },
    /// The span is in another lane.
    #[error("{span} is in lane `{actual}` and not in `{lane}`: call the method of its own lane")]
    OtherLane {
        /// The span.
        span: SpanId,
        /// The lane whose method was called.
        lane: &'static str,
        /// The lane it is in.
        actual: &'static str,
    },
    /// The span was evicted before.
    #[error("{span} is evicted already: recall it by its id, or restore it to the window")]
    AlreadyEvicted {
        /// The span.
        span: SpanId,
    },
    /// A summary stands in the span's place.
    #[error("{span} is replaced by a summary: re-ground the summary to bring it back")]
    Replaced {
        /// The span.
        span: SpanId,
    },
    /// Its exchange lacks a result (rule R16).
    #[error(
        "{span} belongs to an exchange whose call `{call}` of {turn}, {age} tokens ago, has no final result yet: push it first, or \
         give the call up with `Window::abandon`"
    )]
    Pending {
        /// The span.
        span: SpanId,
        /// The span that made the call.
        turn: SpanId,
        /// The provider's id of the call.
        call: Arc<str>,
        /// The tokens that entered after it.
        age: u64,
    },
    /// Only a part of an exchange is named (rule R16).
    #[error("{span} leaves with its whole exchange, and {left} is of it: name both, or neither")]
    HalfAnExchange {
        /// The span that is named.
        span: SpanId,
        /// One that is not.
        left: SpanId,
    },
    /// A part of its exchange is sealed, and not all of it is named.
    #[error(
        "{span} is of an exchange that the provider signed a part of, so it goes whole or not at all: name {} as well",
        Ids(others)
    )]
    Sealed {
        /// The span that is named.
        span: SpanId,
        /// Those that are not.
        others: Vec<SpanId>,
    },
    /// It was imported as a block that keepspan does not know, or as what a provider compacted (rule R4).
    #[error(
        "{span} is a block that nobody here can read, or what a provider made of earlier text, so no summary takes its place and no \
         model takes it away: keep it, or evict it by its id"
    )]
    Opaque {
        /// The span.
        span: SpanId,
    },
    /// The span was removed by a declared mutation.
    #[error("{span} was discarded by a declared mutation and is not in the store: recalling it says how to recover")]
    Discarded {
        /// The span.
        span: SpanId,
    },
    /// The summary left when its sources came back, or when a second summary took its place.
    #[error("{span} is a summary that has left the window: use the ids of what stands in its place, or recall it")]
    Retired {
        /// The span.
        span: SpanId,
    },
    /// The span entered, and the process ended before a commit had it.
    #[error(
        "{span} entered and was never committed, so its text is gone with the process that held it: only its number is known"
    )]
    Unrecorded {
        /// The span.
        span: SpanId,
    },
    /// The span is in the window.
    #[error("{span} is resident: there is nothing to bring back")]
    Resident {
        /// The span.
        span: SpanId,
    },
    /// The lane's declared kind forbids it, whatever the handle's type says.
    #[error("`{lane}` is declared with a kind that forbids this: derive `ContextState`, do not write it by hand")]
    Forbidden {
        /// The lane.
        lane: &'static str,
    },
    /// The span is not in the store yet.
    #[error("{span} is not externalized: externalize the lanes first")]
    NotExternalized {
        /// The span.
        span: SpanId,
    },
}

/// Why nothing was externalized: the store's failure. All text stays in the window.
pub type ExternalizeError = CommitError;

/// Why nothing was evicted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EvictError {
    /// The spans could not be chosen.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// A span's lane never lets spans leave.
    #[error("{span} is in `{lane}`, whose spans never leave: evict from another lane")]
    Kept {
        /// The span.
        span: SpanId,
        /// The lane.
        lane: &'static str,
    },
    /// A pointer could not be counted.
    #[error("a pointer could not be counted: {0}; mend the counter, then run the step again")]
    Counter(#[from] CounterError),
    /// The tombstones could not be committed.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// Why a call was not abandoned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AbandonError {
    /// No such span.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// The span made no such call, or the call has its result, or was abandoned before.
    #[error("{turn} has no open call `{call}`: `Window::open_calls` lists those that are")]
    NotOpen {
        /// The span.
        turn: SpanId,
        /// The provider's id of the call.
        call: Arc<str>,
    },
    /// The notice could not be counted.
    #[error(
        "the notice that stands for the result could not be counted: {0}; mend the counter, then run the step again"
    )]
    Counter(#[from] CounterError),
    /// It could not be committed.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// Why an evicted span did not come back into the window.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// The report is of another window, whose spans have the same ids.
    #[error("the report is of another window: undo it there")]
    OtherWindow,
    /// An action was denied for what cannot be brought back.
    #[error("nothing can be brought back: {0}")]
    Nothing(Denial),
    /// The spans could not be chosen.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// A pointer could not be counted.
    #[error("a pointer could not be counted: {0}; mend the counter, then run the step again")]
    Counter(#[from] CounterError),
    /// The store could not be read, or the event not committed.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// Why a span's text could not be recalled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecallError {
    /// The span could not be chosen.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// It was removed by a declared mutation (rule R23).
    #[error("{span} was discarded ({reason}); to recover: {recovery}")]
    Discarded {
        /// The span.
        span: SpanId,
        /// Why it was removed.
        reason: String,
        /// What to do if it is needed.
        recovery: String,
    },
    /// A model's call asks for nothing.
    #[error(transparent)]
    Call(#[from] RecallCallError),
    /// The reply could not be counted.
    #[error("the reply could not be counted: {0}; mend the counter, then answer again")]
    Counter(#[from] CounterError),
    /// The span could not come back into the window.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// The store could not be read, or gave other bytes.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// Why a model's answer is no summary (rule R6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SummaryTextError {
    /// It stopped at the output limit.
    #[error("the summary was cut off at the output limit: ask for a shorter one, or raise the limit")]
    Truncated,
    /// It has no text.
    #[error("the summary is empty: the sources stay in the window; ask again")]
    Empty,
    /// The model called a tool instead.
    #[error("the model called a tool instead of summarizing: offer none when asking for a summary")]
    ToolCall,
    /// There is reasoning and no answer.
    #[error("the model reasoned and gave no answer: the sources stay in the window; ask again")]
    ReasoningOnly,
    /// The model or its provider refused.
    #[error(
        "the model refused to summarize: the sources stay in the window; ask another model, or evict them to pointers"
    )]
    Refused,
    /// The call failed.
    #[error("the model call failed: an error text is no summary; the sources stay in the window; ask again")]
    Failed,
}

/// Why no summary took its sources' place.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SummarizeError {
    /// The sources could not be chosen.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// The summary is as large as what it stands for (rule R6).
    #[error("the summary takes {summary} tokens and its sources {sources}: nothing is gained; write a shorter one")]
    NotSmaller {
        /// Tokens of the summary, with the line that names its sources.
        summary: u64,
        /// Tokens of the sources.
        sources: u64,
    },
    /// The lanes belong to two windows.
    #[error("`{lane}` belongs to another window: give the derived lane of this one")]
    OtherWindow {
        /// The derived lane.
        lane: &'static str,
    },
    /// The summary could not be counted.
    #[error("the summary could not be counted: {0}; mend the counter, then run the step again")]
    Counter(#[from] CounterError),
    /// The summary could not be committed.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// Why a summary's sources did not come back.
pub type RegroundError = RestoreError;

/// Why a span was not discarded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiscardError {
    /// The span could not be chosen.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// The store has its bytes already, or may have them, or has them sealed: [`Lane::redact`](crate::Lane::redact) is for that.
    #[error(
        "the text of {span} is in the store already, or may be (as {holder}), and a discard does not reach there: redact it instead, `lanes.<lane>.redact(id, mutation)`"
    )]
    InStore {
        /// The span.
        span: SpanId,
        /// The span, the same or one with the same text, that brought the bytes there.
        holder: SpanId,
    },
    /// The notice could not be counted.
    #[error("the notice that stands in its place could not be counted: {0}; mend the counter, then run the step again")]
    Counter(#[from] CounterError),
    /// The record could not be committed.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// Why a text was not redacted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RedactError {
    /// The span could not be chosen.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// A protected lane holds the same text, whose blob would be gone for it as well.
    #[error(
        "the text of {span} is also {holder} in `{lane}`, which is protected: its owner can redact both, with \
         `Window::redact_protected`"
    )]
    Protected {
        /// The span that was named.
        span: SpanId,
        /// The protected span with the same text.
        holder: SpanId,
        /// Its lane.
        lane: &'static str,
    },
    /// The notice that stands in its place could not be counted.
    #[error("the notice that stands in its place could not be counted: {0}; mend the counter, then run the step again")]
    Counter(#[from] CounterError),
    /// The record could not be committed.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// Why a reason, a recovery path or an authority was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{what}` is blank: whoever audits this window must be able to read it")]
pub struct Unexplained {
    what: &'static str,
}

/// A text that whoever audits the window will read, under the name that a message gives it.
pub(crate) fn explained(what: &'static str, text: impl Into<String>) -> Result<String, Unexplained> {
    let text = text.into();
    if text.trim().is_empty() { Err(Unexplained { what }) } else { Ok(text) }
}
