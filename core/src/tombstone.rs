//! The record of an eviction, as a value.

use std::{ops::Range, sync::Arc};

use serde::{Serialize, Serializer, ser::SerializeStruct as _};

use crate::{Digest, PolicyVersion, SpanId, journal::TombstoneRecord, kind::KindId, pointer::Pointer};

/// The record of an eviction, written outside the window before the span leaves it (rule R7). Made by an eviction, or
/// read back from the episode's log.
#[derive(Clone, Debug, PartialEq)]
pub struct Tombstone(Arc<Named>);

/// A record with its numbers resolved.
#[derive(Debug, PartialEq)]
struct Named {
    lane: &'static str,
    kind: KindId,
    name: Option<Arc<str>>,
    policy: PolicyVersion,
    record: TombstoneRecord,
}

impl TombstoneRecord {
    pub(crate) fn named(
        self,
        lane: &'static str,
        kind: KindId,
        name: Option<Arc<str>>,
        policy: PolicyVersion,
    ) -> Tombstone {
        Tombstone(Arc::new(Named { lane, kind, name, policy, record: self }))
    }
}

impl Tombstone {
    /// As it is written.
    pub(crate) fn record(&self) -> &TombstoneRecord {
        &self.0.record
    }

    /// The span that left.
    pub fn span(&self) -> SpanId {
        self.0.record.span
    }

    /// The lane it left.
    pub fn lane(&self) -> &str {
        self.0.lane
    }

    /// The kind of that lane.
    pub fn kind(&self) -> KindId {
        self.0.kind
    }

    /// The tool it came from, where it is a tool's result.
    pub fn name(&self) -> Option<&str> {
        self.0.name.as_deref()
    }

    /// Where it stood, in tokens pushed since the episode began.
    pub fn token_range(&self) -> Range<u64> {
        self.0.record.start..self.0.record.end
    }

    /// Its length in tokens.
    pub fn tokens(&self) -> u64 {
        self.0.record.end.saturating_sub(self.0.record.start)
    }

    /// The model, prompt and policy in force when it left, as the window knew them (rule R22).
    pub fn policy(&self) -> &PolicyVersion {
        &self.0.policy
    }

    /// The score that the eviction gave it, where there was one.
    pub fn score(&self) -> Option<f64> {
        self.0.record.score
    }

    /// SHA-256 of its bytes: its address in the store.
    pub fn sha256(&self) -> Digest {
        self.0.record.sha256
    }

    /// The spans it was derived from, back to the first; empty for a first-hand span.
    pub fn derivation(&self) -> &[SpanId] {
        &self.0.record.derivation
    }

    /// The summary that took its place, when one did.
    pub fn replaced_by(&self) -> Option<SpanId> {
        self.0.record.replaced_by
    }

    /// What the window shows in the span's place (rule R8), unless neighbours that left as well share a line with it.
    pub fn pointer(&self) -> Pointer {
        Pointer::of(self)
    }
}

impl Serialize for Tombstone {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Named { lane, kind, name, policy, record } = &*self.0;
        let mut fields = serializer.serialize_struct("Tombstone", 11)?;
        fields.serialize_field("span", &record.span)?;
        fields.serialize_field("lane", lane)?;
        fields.serialize_field("kind", kind)?;
        fields.serialize_field("name", name)?;
        fields.serialize_field("start", &record.start)?;
        fields.serialize_field("end", &record.end)?;
        fields.serialize_field("policy", policy)?;
        fields.serialize_field("score", &record.score)?;
        fields.serialize_field("sha256", &record.sha256)?;
        fields.serialize_field("derivation", &record.derivation)?;
        fields.serialize_field("replaced_by", &record.replaced_by)?;
        fields.end()
    }
}
