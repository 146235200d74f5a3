//! What a record says: the events of one commit, in the order they happened. The layout is positional: a new field is a
//! new variant at the end, or a new version of the records.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    Certainty, Digest, LaneSpec, Origin, PolicyVersion, Role, SpanId, TokenCount, accounting::Note, action::Ending,
    kind::KindId, span::Part, window::pointers::Edit, wire::Wire,
};

/// One thing that happened to an episode. Lanes, tool names and policies are given by their number in the log so far.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Event {
    Opened {
        state: String,
        lanes: Vec<LaneRecord>,
        policy: PolicyVersion,
        probe: Probe,
    },
    /// A new owner, with the struct of this name: whoever wrote before it is [superseded](crate::CommitError::Superseded).
    /// `clean` when the one before [closed](Self::Closed) the window.
    Resumed {
        state: String,
        clean: bool,
    },
    /// The limits in force since the episode was opened or resumed.
    Limited(Option<Ceiling>),
    Externalized(SpanRecord),
    Evicted(TombstoneRecord),
    /// How the pointers changed in this commit.
    Pointed(Edit),
    Summarized {
        summary: SpanRecord,
        sources: Vec<SpanId>,
        depth: u32,
        escalation: Option<String>,
    },
    Regrounded {
        summary: SpanId,
        sources: Vec<SpanId>,
    },
    Restored {
        span: SpanId,
    },
    Discarded {
        span: SpanRecord,
        mutation: MutationRecord,
    },
    /// Spans, each with what is shown in its place.
    Redacted {
        spans: Vec<SpanId>,
        mutations: Vec<MutationRecord>,
        authority: Option<String>,
    },
    PolicyChanged(PolicyVersion),
    /// Other lanes from here on; `to` has for each lane before the one it became, and none where it had no spans and went.
    Migrated {
        reason: String,
        lanes: Vec<LaneRecord>,
        to: Vec<Option<u16>>,
    },
    /// What pruning did or cost; `written` is the rationale that it put into the window.
    Booked {
        note: Note,
        written: Option<SpanId>,
    },
    /// Everything that entered is on record, and the window is gone.
    Closed,
    /// An action is about to run: on record before it does (rule R19).
    Intended(IntentRecord),
    /// What became of an attempt, by whoever ran it or found out.
    Ended {
        signature: Digest,
        attempt: u64,
        action: String,
        ending: Ending,
    },
    /// An attempt failed in a way that leaves open whether it took effect.
    Doubted {
        signature: Digest,
        attempt: u64,
        action: String,
        why: String,
    },
    /// A call will have no result; the span that says so is the next.
    Abandoned {
        result: SpanRecord,
        reason: String,
    },
}

impl Event {
    /// The blob that came with it.
    pub(crate) fn brings(&self) -> Option<Digest> {
        match self {
            Self::Externalized(span)
            | Self::Summarized { summary: span, .. }
            | Self::Abandoned { result: span, .. } => span.sha256,
            Self::Ended { ending: Ending::Done { sha256, .. }, .. } => Some(*sha256),
            _ => None,
        }
    }
}

/// On what an action was begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IntentRecord {
    pub(crate) signature: Digest,
    pub(crate) attempt: u64,
    pub(crate) action: String,
    /// The lanes it requires.
    pub(crate) requires: Vec<u16>,
    pub(crate) evidence: Vec<SpanId>,
    pub(crate) consent: Option<SpanId>,
    /// Why it runs although its signature is on record.
    pub(crate) repeats: Option<String>,
    /// Why it runs although the window is lossy.
    pub(crate) lossy: Option<String>,
    /// What the request is, in words, where its type says so.
    pub(crate) about: Option<String>,
}

/// A lane as the log knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LaneRecord {
    pub(crate) name: String,
    pub(crate) kind: KindId,
    pub(crate) pinned: bool,
}

impl LaneRecord {
    pub(crate) fn all(lanes: &[LaneSpec]) -> Vec<Self> {
        let one = |lane: &LaneSpec| Self { name: lane.name().to_owned(), kind: lane.kind(), pinned: lane.pinned() };
        lanes.iter().map(one).collect()
    }

    pub(crate) fn is(&self, lane: &LaneSpec) -> bool {
        (self.name.as_str(), self.kind, self.pinned) == (lane.name(), lane.kind(), lane.pinned())
    }
}

/// What the episode's counter gives for a fixed text: another one would not add up (rule R25).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Probe {
    pub(crate) tokens: u32,
    pub(crate) certainty: Certainty,
}

/// The budget's numbers that a reader of the log needs, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ceiling {
    pub(crate) limit: u64,
    pub(crate) trigger: u64,
    pub(crate) fixed: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SpanRecord {
    pub(crate) span: SpanId,
    pub(crate) lane: u16,
    pub(crate) origin: Origin,
    pub(crate) role: Role,
    pub(crate) name: Option<std::num::NonZeroU16>,
    pub(crate) start: u64,
    pub(crate) tokens: u32,
    pub(crate) certainty: Certainty,
    /// Left out of a span that must not be guessed.
    pub(crate) sha256: Option<Digest>,
    pub(crate) bytes: u64,
    pub(crate) text: bool,
    pub(crate) part: Part,
    pub(crate) reads: Option<Arc<str>>,
    pub(crate) failed: bool,
    pub(crate) wire: Option<Wire>,
}

impl SpanRecord {
    pub(crate) fn end(&self) -> u64 {
        self.start.saturating_add(u64::from(self.tokens))
    }
}

/// A tombstone as it is written (rule R7): what [`Tombstone`](crate::Tombstone) tells, by number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct TombstoneRecord {
    pub(crate) span: SpanId,
    pub(crate) lane: u16,
    pub(crate) name: Option<std::num::NonZeroU16>,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) policy: u32,
    pub(crate) score: Option<f64>,
    pub(crate) sha256: Digest,
    pub(crate) derivation: Vec<SpanId>,
    pub(crate) replaced_by: Option<SpanId>,
}

/// Why something is gone for good, what to do about it, and what its notice takes in the window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MutationRecord {
    pub(crate) reason: String,
    pub(crate) recovery: String,
    pub(crate) tokens: u32,
    pub(crate) certainty: Certainty,
}

impl MutationRecord {
    pub(crate) fn count(&self) -> TokenCount {
        TokenCount::of(self.tokens, self.certainty)
    }
}
