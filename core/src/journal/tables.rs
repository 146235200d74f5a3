//! What a log refers to by number: lanes, tool names, policies.

use std::{num::NonZeroU16, sync::Arc};

use super::{Entry, Event, TombstoneRecord};
use crate::{LaneSpec, PolicyVersion, state, tombstone::Tombstone};

/// The lanes, names and policies of a log as far as it was read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tables {
    lanes: &'static [LaneSpec],
    names: Vec<Arc<str>>,
    policies: Vec<PolicyVersion>,
}

impl Tables {
    /// What an entry brings, before its events are read.
    pub(crate) fn enter(&mut self, entry: &Entry<'_>) {
        self.names.extend(entry.names.iter().cloned());
    }

    /// What an event changes.
    pub(crate) fn follow(&mut self, event: &Event) {
        match event {
            Event::Opened { lanes, policy, .. } => {
                self.lanes = state::recorded(lanes, self.lanes);
                self.policies.push(policy.clone());
            }
            Event::Migrated { lanes, .. } => self.lanes = state::recorded(lanes, self.lanes),
            Event::PolicyChanged(policy) => self.policies.push(policy.clone()),
            _ => {}
        }
    }

    pub(crate) fn lanes(&self) -> &'static [LaneSpec] {
        self.lanes
    }

    pub(crate) fn lane(&self, lane: u16) -> Option<&'static LaneSpec> {
        self.lanes.get(usize::from(lane))
    }

    pub(crate) fn name(&self, name: NonZeroU16) -> Option<&Arc<str>> {
        self.names.get(usize::from(name.get()).checked_sub(1)?)
    }

    fn policy(&self, policy: u32) -> Option<&PolicyVersion> {
        self.policies.get(usize::try_from(policy).ok()?)
    }

    /// A tombstone in words; `None` when it names what the log does not have.
    pub(crate) fn tombstone(&self, record: TombstoneRecord) -> Option<Tombstone> {
        let lane = self.lane(record.lane)?;
        let name = match record.name {
            Some(name) => Some(self.name(name)?.clone()),
            None => None,
        };
        let policy = self.policy(record.policy)?.clone();
        Some(record.named(lane.name(), lane.kind(), name, policy))
    }
}
