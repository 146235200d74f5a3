//! What happened in an episode, as the report tells it. Tokens, turns and entry numbers; times in milliseconds since 1970.

use serde::Serialize;

use crate::attempts::Attempt;

/// One episode, from its log.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Story {
    /// The file's name.
    pub store: String,
    /// The episode's name.
    pub episode: String,
    /// The policy versions in force, oldest first.
    pub policies: Vec<PolicyAt>,
    /// How many turns the model took.
    pub turns: u64,
    /// How many spans entered.
    pub spans: u64,
    /// How often spans came back.
    pub returns: u64,
    /// How often another process went on with it.
    pub resumed: u64,
    /// What a request may take, where the log says.
    pub budget: Option<Limit>,
    /// One a log entry, oldest first.
    pub moments: Vec<Moment>,
    /// Passes and fallbacks, oldest first.
    pub passes: Vec<Pass>,
    /// Every span that left the window at some time, by when it left last.
    pub departures: Vec<Departure>,
    /// Every summary, by its id.
    pub summaries: Vec<Summary>,
    /// What was removed for good, oldest first.
    pub removals: Vec<Removal>,
    /// Every attempt at an action, oldest first.
    pub actions: Vec<Attempt>,
    /// Since when no claim may rest on the record being complete.
    pub lossy: Option<Lossy>,
    /// What is missing from the record, a sentence each.
    pub gaps: Vec<String>,
}

/// A policy version and the turn since which it was in force.
#[derive(Clone, Debug, Serialize)]
pub struct PolicyAt {
    pub turn: u64,
    pub policy: String,
}

/// The lines in the chart.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Limit {
    pub limit: u64,
    pub trigger: u64,
}

/// A log entry.
#[derive(Clone, Debug, Serialize)]
pub struct Moment {
    pub entry: u64,
    pub turn: u64,
    pub time: Option<u64>,
    /// What the request takes after it.
    pub utilization: u64,
    pub marks: Vec<Mark>,
}

/// Something worth a mark under the chart.
#[derive(Clone, Debug, Serialize)]
pub struct Mark {
    pub kind: MarkKind,
    /// A sentence.
    pub what: String,
}

/// The rows under the chart, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MarkKind {
    Pass,
    Refusal,
    Fallback,
    Left,
    Back,
    Removed,
    Acted,
    Failed,
    Uncertain,
    Change,
    /// Of a replay: a call that mentions what left before.
    Late,
    /// Of a replay: a call that succeeded before.
    Repeated,
    /// Of a replay: the session's own compaction.
    Compacted,
}

/// A pass of the model, or a fallback.
#[derive(Clone, Debug, Serialize)]
pub struct Pass {
    pub entry: u64,
    pub turn: u64,
    /// The fallback's name; `None` where a model decided.
    pub fallback: Option<String>,
    pub before: u64,
    pub after: u64,
    /// What left.
    pub gross: u64,
    /// What deciding took, and what stayed in its place.
    pub overhead: u64,
    pub net: i64,
    pub spans: u64,
}

/// A span that left.
#[derive(Clone, Debug, Serialize)]
pub struct Departure {
    pub span: u64,
    pub lane: String,
    pub kind: String,
    pub tool: Option<String>,
    pub tokens: u64,
    pub entry: u64,
    pub turn: u64,
    /// What became of it.
    pub state: State,
    /// The summary in its place.
    pub summary: Option<u64>,
    /// Only when it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Where a span that left is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Evicted,
    Summarized,
    Retired,
    Resident,
    Removed,
    Lost,
}

impl State {
    /// Each with the words that follow a number of spans.
    pub const ALL: [(Self, &str); 6] = [
        (Self::Evicted, "evicted to pointers"),
        (Self::Summarized, "behind summaries"),
        (Self::Retired, "summaries that went"),
        (Self::Resident, "back in the window"),
        (Self::Removed, "removed since"),
        (Self::Lost, "lost"),
    ];

    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Evicted => "evicted",
            Self::Summarized => "summarized",
            Self::Retired => "retired",
            Self::Resident => "resident",
            Self::Removed => "removed",
            Self::Lost => "lost",
        }
    }
}

/// A summary and where it comes from.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    pub span: u64,
    pub lane: String,
    pub tokens: u64,
    pub turn: u64,
    pub depth: u32,
    pub sources: Vec<Source>,
    /// Why a summary of summaries was allowed.
    pub escalation: Option<String>,
    /// The turn in which its sources came back.
    pub regrounded: Option<u64>,
    /// Only when it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// What a summary was made of.
#[derive(Clone, Debug, Serialize)]
pub struct Source {
    pub span: u64,
    pub lane: String,
    pub tool: Option<String>,
    pub tokens: u64,
}

/// A declared mutation.
#[derive(Clone, Debug, Serialize)]
pub struct Removal {
    pub span: u64,
    pub lane: String,
    pub tokens: u64,
    pub turn: u64,
    /// `discarded` before it reached the store, or `redacted` from it.
    pub how: String,
    pub reason: String,
    pub recovery: String,
}

/// Where the record stops being complete.
#[derive(Clone, Debug, Serialize)]
pub struct Lossy {
    pub turn: u64,
    pub why: String,
}

impl Story {
    /// The moment at which the request was largest, the first of several.
    pub fn peak(&self) -> Option<&Moment> {
        self.moments.iter().rev().max_by_key(|moment| moment.utilization)
    }

    /// How many marks of a kind there are.
    pub fn marks(&self, kind: MarkKind) -> u64 {
        let marks = self.moments.iter().flat_map(|moment| &moment.marks);
        number(marks.filter(|mark| mark.kind == kind).count())
    }
}

/// A count as a number.
pub fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
