//! What a commit writes beside the blobs: one record an event, JSON, in the order it happened.

use std::{borrow::Cow, ops::Range, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{
    Certainty, Digest, Origin, PolicyVersion, Role, SpanId, accounting::PassRecord, kind::KindId, pointer::Pointer,
    span::Part,
};

/// The version of the record format; a store that holds another is refused.
pub(crate) const FORMAT: u32 = 1;

/// One entry of an episode's log. Serialized only: the JSON is the format.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Event {
    Opened { format: u32, state: String, lanes: Vec<LaneRecord>, policy: PolicyVersion },
    Externalized(SpanRecord),
    Evicted(Arc<TombstoneRecord>),
    Summarized { summary: SpanRecord, sources: Vec<SpanId>, depth: u32, escalation: Option<String> },
    Regrounded { summary: SpanId, sources: Vec<SpanId> },
    Restored { span: SpanId },
    Discarded { span: SpanId, lane: String, tokens: u32, reason: String, recovery: String },
    PolicyChanged { policy: PolicyVersion },
    Pruned(PassRecord),
    FellBack { strategy: Cow<'static, str>, pass: PassRecord },
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LaneRecord {
    pub(crate) name: String,
    pub(crate) kind: KindId,
    pub(crate) pinned: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SpanRecord {
    pub(crate) span: SpanId,
    pub(crate) lane: Cow<'static, str>,
    pub(crate) origin: Origin,
    pub(crate) role: Role,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<Arc<str>>,
    pub(crate) start: u64,
    pub(crate) tokens: u32,
    pub(crate) certainty: Certainty,
    pub(crate) sha256: Digest,
    pub(crate) bytes: u64,
    pub(crate) text: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) part: Option<Part>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct TombstoneRecord {
    pub(crate) span: SpanId,
    pub(crate) lane: Cow<'static, str>,
    pub(crate) kind: KindId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<Arc<str>>,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) policy: PolicyVersion,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) score: Option<f64>,
    pub(crate) sha256: Digest,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) derivation: Vec<SpanId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) replaced_by: Option<SpanId>,
}

/// The record of an eviction, written outside the window before the span leaves it (rule R7). Made by an eviction, or
/// read back from the episode's log.
#[derive(Clone, Debug, PartialEq)]
pub struct Tombstone(pub(crate) Arc<TombstoneRecord>);

impl Tombstone {
    /// The span that left.
    pub fn span(&self) -> SpanId {
        self.0.span
    }

    /// The lane it left.
    pub fn lane(&self) -> &str {
        &self.0.lane
    }

    /// The kind of that lane.
    pub fn kind(&self) -> KindId {
        self.0.kind
    }

    /// Where it stood, in tokens pushed since the episode began.
    pub fn token_range(&self) -> Range<u64> {
        self.0.start..self.0.end
    }

    /// Its length in tokens.
    pub fn tokens(&self) -> u64 {
        self.0.end.saturating_sub(self.0.start)
    }

    /// The model, prompt and policy in force when it left, as the window knew them (rule R22).
    pub fn policy(&self) -> &PolicyVersion {
        &self.0.policy
    }

    /// The score that the eviction gave it, where there was one.
    pub fn score(&self) -> Option<f64> {
        self.0.score
    }

    /// SHA-256 of its bytes: its address in the store.
    pub fn sha256(&self) -> Digest {
        self.0.sha256
    }

    /// The spans it was derived from, back to the first; empty for a first-hand span.
    pub fn derivation(&self) -> &[SpanId] {
        &self.0.derivation
    }

    /// The summary that took its place, when one did.
    pub fn replaced_by(&self) -> Option<SpanId> {
        self.0.replaced_by
    }

    /// What the window shows in the span's place (rule R8).
    pub fn pointer(&self) -> Pointer {
        Pointer::of(self)
    }
}
