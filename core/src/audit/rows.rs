//! What a record says that a database can keep in columns of its own.

use crate::{
    Digest, Fault, PolicyVersion, SpanId,
    journal::{self, Event, TombstoneRecord},
    kind::KindId,
};

/// What one record says of evictions, for a store that keeps that beside its log, in columns; see [`rows`].
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Rows {
    /// Milliseconds since 1970, by the clock of whoever wrote; `None` where there was none.
    pub time: Option<u64>,
    /// The lanes from this record on, by their number; none where they stay as they were.
    pub lanes: Vec<(String, KindId)>,
    /// The policies that came into force, numbered on from those of the records before, from 0.
    pub policies: Vec<PolicyVersion>,
    /// The spans that left.
    pub tombstones: Vec<TombstoneRow>,
}

/// A [`Tombstone`](crate::Tombstone) by number: what the numbers stand for is in [`Rows`] of this record and those before.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TombstoneRow {
    /// The span that left.
    pub span: SpanId,
    /// The number of its lane.
    pub lane: u16,
    /// The number of the policy in force.
    pub policy: u32,
    /// Where it stood, in tokens pushed before it.
    pub start: u64,
    /// Where it ended.
    pub end: u64,
    /// Its score, where there was one.
    pub score: Option<f64>,
    /// SHA-256 of its bytes.
    pub sha256: Digest,
    /// The summary that took its place, when one did.
    pub replaced_by: Option<SpanId>,
}

/// Reads a record without those before it, and without checking that it follows from them. O(record).
///
/// # Errors
/// [`Fault`] where the bytes are no record of this version.
pub fn rows(record: &[u8]) -> Result<Rows, Fault> {
    let (entry, _) = journal::read(record)?;
    let mut rows = Rows { time: Some(entry.time).filter(|time| *time > 0), ..Rows::default() };
    for event in entry.events {
        match event? {
            Event::Opened { lanes, policy, .. } => {
                rows.lanes = lanes.into_iter().map(|lane| (lane.name, lane.kind)).collect();
                rows.policies.push(policy);
            }
            Event::Migrated { lanes, .. } => {
                rows.lanes = lanes.into_iter().map(|lane| (lane.name, lane.kind)).collect();
            }
            Event::PolicyChanged(policy) => rows.policies.push(policy),
            Event::Evicted(record) => rows.tombstones.push(record.into()),
            _ => {}
        }
    }
    Ok(rows)
}

impl From<TombstoneRecord> for TombstoneRow {
    fn from(record: TombstoneRecord) -> Self {
        let TombstoneRecord { span, lane, policy, start, end, score, sha256, replaced_by, .. } = record;
        Self { span, lane, policy, start, end, score, sha256, replaced_by }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use crate::{
        ContextState, Episode, EpisodeId, Spans, Window,
        store::{MemoryStore, Store as _},
    };

    #[derive(ContextState)]
    struct Agent {
        #[precondition]
        schema: Spans,
        #[evictable(otherwise)]
        work: Spans,
    }

    #[test]
    fn each_record_says_what_it_brings() {
        let store = std::sync::Arc::new(MemoryStore::new());
        let mut window = Window::<Agent, _>::open(store.clone(), Episode::new("e", "p")).unwrap();
        let lanes = window.lanes();
        lanes.schema.push("users.id BIGINT").unwrap();
        let id = lanes.work.push("a diff").unwrap();
        let tombstones = lanes.externalize().wait().unwrap().work.evict(id).wait().unwrap();
        window.change_policy("q").wait().unwrap();
        let log = store.read(&EpisodeId::new("e"), 0, u64::MAX).unwrap();
        let said: Vec<_> = log.iter().map(|record| rows(record).unwrap()).collect();
        let [opened, pushed, evicted, changed] = said.as_slice() else { unreachable!("{said:?}") };
        let lanes: Vec<_> = opened.lanes.iter().map(|(name, kind)| (name.as_str(), kind.attribute())).collect();
        assert_eq!(lanes, [("schema", "precondition"), ("work", "evictable")]);
        assert_eq!((&opened.policies[..], &changed.policies[..]), (&["p".into()][..], &["q".into()][..]));
        assert!(pushed.tombstones.is_empty() && pushed.lanes.is_empty() && pushed.policies.is_empty());
        assert!(said.iter().all(|rows| rows.time.is_some()));
        let [row] = evicted.tombstones.as_slice() else { unreachable!("{evicted:?}") };
        assert_eq!((row.span, row.lane, row.policy, row.sha256), (id, 1, 0, tombstones[0].sha256()));
        assert_eq!(row.start..row.end, tombstones[0].token_range());
        assert_eq!(rows(&log[0][1..]), Err(Fault::Version { found: log[0][1], supported: log[0][0] }));
    }
}
