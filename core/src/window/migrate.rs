//! Other lanes than the episode was written with: told as a difference, and taken over only as a logged migration says.

use std::fmt;

use super::{candidates::Class, contents::Contents};
use crate::{
    LaneSpec, ResumeError, SpanId, TokenCounter, Unexplained,
    error::explained,
    journal::{Event, LaneRecord},
    kind::{Derived, Kind as _},
    state::recorded,
};

/// How a struct's lanes differ from those an episode was written with.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LaneChange {
    /// The episode has no such lane.
    Added {
        /// The lane.
        lane: String,
    },
    /// The struct has no such lane.
    Removed {
        /// The lane.
        lane: String,
        /// How many spans of the episode are in it.
        spans: u64,
    },
    /// A lane is gone and one of the same kind is new: the same under another name, it seems.
    Renamed {
        /// The lane in the episode.
        from: String,
        /// The lane in the struct.
        to: String,
    },
    /// The lane protects less than it did.
    Weakened {
        /// The lane in the struct.
        lane: String,
        /// What it was: `precondition`, `pinned precondition`.
        from: String,
        /// What it is.
        to: String,
    },
    /// The lane protects more than it did, or is of another kind that protects as much.
    Strengthened {
        /// The lane in the struct.
        lane: String,
        /// What it was.
        from: String,
        /// What it is.
        to: String,
    },
    /// The migration names a lane that neither the episode nor the struct has, or not where it says.
    Unknown {
        /// The name.
        lane: String,
    },
    /// The lane held summaries and does not, or the reverse: no migration does that.
    Summaries {
        /// The lane in the struct.
        lane: String,
    },
}

impl fmt::Display for LaneChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added { lane } => write!(f, "`{lane}` is new"),
            Self::Removed { lane, spans } => write!(f, "`{lane}` is gone (spans in it: {spans})"),
            Self::Renamed { from, to } => write!(f, "`{from}` seems to be `{to}` now"),
            Self::Weakened { lane, from, to } => write!(f, "`{lane}` was `{from}` and is weakened to `{to}`"),
            Self::Strengthened { lane, from, to } => write!(f, "`{lane}` was `{from}` and is `{to}`"),
            Self::Unknown { lane } => write!(f, "the migration names `{lane}`, and there is no such lane to name so"),
            Self::Summaries { lane } => write!(f, "`{lane}` held summaries and does not, or the reverse"),
        }
    }
}

/// The permission to go on with other lanes: explicit and logged, with the reason that an audit will read.
///
/// A lane that is new, or that protects more, needs nothing further. One that has another name is [renamed](Self::rename),
/// and one that protects less is named as [weakened](Self::weaken): a precondition must not become evictable because
/// somebody edited a struct.
#[derive(Clone, Debug)]
pub struct Migration {
    reason: String,
    renamed: Vec<(String, String)>,
    weakened: Vec<String>,
}

impl Migration {
    /// A migration with its reason.
    ///
    /// # Errors
    /// When the reason is blank.
    pub fn because(reason: impl Into<String>) -> Result<Self, Unexplained> {
        Ok(Self { reason: explained("reason", reason)?, renamed: Vec::new(), weakened: Vec::new() })
    }

    /// The spans of the episode's lane `from` go on in the struct's lane `to`, which may be one the episode has. A lane that
    /// holds spans cannot go in any other way. A name that neither has is of no effect.
    #[must_use]
    pub fn rename(mut self, from: impl Into<String>, to: impl Into<String>) -> Self {
        self.renamed.push((from.into(), to.into()));
        self
    }

    /// The struct's lane `lane`, by its name in the struct, protects less than the episode's did, on purpose. One that has
    /// another name too is also [renamed](Self::rename). A name that the struct does not have is of no effect.
    #[must_use]
    pub fn weaken(mut self, lane: impl Into<String>) -> Self {
        self.weakened.push(lane.into());
        self
    }

    /// Names that are none of the lanes they should be.
    fn unknown(&self, before: &[LaneSpec], now: &[LaneSpec]) -> Vec<LaneChange> {
        let is = |lanes: &[LaneSpec], name: &str| lanes.iter().any(|lane| lane.name() == name);
        let from = self.renamed.iter().map(|(from, _)| from).filter(|from| !is(before, from));
        let to = self.renamed.iter().map(|(_, to)| to).chain(&self.weakened).filter(|to| !is(now, to));
        from.chain(to).map(|lane| LaneChange::Unknown { lane: lane.clone() }).collect()
    }

    fn target<'a>(&'a self, lane: &'a str) -> &'a str {
        self.renamed.iter().find(|(from, _)| from == lane).map_or(lane, |(_, to)| to)
    }
}

/// Takes a replayed window over to the lanes of the struct; the events that say so.
pub(super) fn migrate(
    contents: &mut Contents,
    lanes: &'static [LaneSpec],
    migration: Option<Migration>,
    counter: &dyn TokenCounter,
) -> Result<Vec<Event>, ResumeError> {
    let table = LaneRecord::all(lanes);
    let before = recorded(&LaneRecord::all(contents.lanes), lanes);
    if std::ptr::eq(before, lanes) {
        contents.with_lanes(lanes);
        return Ok(Vec::new());
    }
    let (to, changes) = compared(contents, lanes, migration.as_ref());
    if !changes.is_empty() {
        return Err(ResumeError::OtherLanes { episode: contents.episode.clone(), changes });
    }
    let reason = migration.map_or_else(|| "the same lanes in another order".to_owned(), |migration| migration.reason);
    contents.migrate(lanes, &to);
    let mut events = vec![Event::Migrated { reason, lanes: table, to }];
    // A pointer names its lane, and more of them where the lane is protected now: that is another text.
    let named = |first, last| contents.named(first, last);
    let edit = contents.pointers.priced_again(&named, &contents.price(counter))?;
    if !edit.is_empty() {
        events.push(Event::Pointed(edit.clone()));
        contents.repoint(edit);
    }
    Ok(events)
}

/// Where each lane goes, and what a migration would have to say and does not.
fn compared(
    contents: &Contents,
    lanes: &'static [LaneSpec],
    migration: Option<&Migration>,
) -> (Vec<Option<u16>>, Vec<LaneChange>) {
    let at = |name: &str| lanes.iter().position(|lane| lane.name() == name);
    let target = |name: &'static str| migration.map_or(name, |migration| migration.target(name)).to_owned();
    let (mut to, mut changes, mut gone) = (Vec::with_capacity(contents.lanes.len()), Vec::new(), Vec::new());
    changes.extend(migration.into_iter().flat_map(|migration| migration.unknown(contents.lanes, lanes)));
    let mut reached = vec![false; lanes.len()];
    for (index, old) in contents.lanes.iter().enumerate() {
        let found = at(&target(old.name()));
        to.push(found.and_then(|found| u16::try_from(found).ok()));
        match found.and_then(|found| Some((reached.get_mut(found)?, lanes.get(found)?))) {
            Some((reached, new)) => {
                *reached = true;
                changes.extend(changed(contents, index, old, new, migration));
            }
            None => gone.push((index, old)),
        }
    }
    let mut fresh: Vec<_> = lanes.iter().zip(reached).filter(|(_, reached)| !reached).map(|(lane, _)| lane).collect();
    for (index, old) in gone {
        let spans = contents.spans_in(index);
        let alike = fresh.iter().position(|new| (new.kind(), new.pinned()) == (old.kind(), old.pinned()));
        match alike.filter(|_| migration.is_none()).map(|alike| fresh.remove(alike)) {
            Some(new) => changes.push(LaneChange::Renamed { from: old.name().to_owned(), to: new.name().to_owned() }),
            None if spans > 0 || migration.is_none() => {
                changes.push(LaneChange::Removed { lane: old.name().to_owned(), spans });
            }
            None => {}
        }
    }
    if migration.is_none() {
        changes.extend(fresh.into_iter().map(|new| LaneChange::Added { lane: new.name().to_owned() }));
    }
    (to, changes)
}

/// What is left to say about a lane that is in both.
fn changed(
    contents: &Contents,
    index: usize,
    old: &LaneSpec,
    new: &LaneSpec,
    migration: Option<&Migration>,
) -> Option<LaneChange> {
    if (old.kind(), old.pinned()) == (new.kind(), new.pinned()) {
        return None;
    }
    let lane = new.name().to_owned();
    if (old.kind() == Derived::ID) != (new.kind() == Derived::ID) && contents.spans_in(index) > 0 {
        return Some(LaneChange::Summaries { lane });
    }
    let (from, to) = (described(old), described(new));
    if Class::of(new) < Class::of(old) {
        let said = migration.is_some_and(|migration| migration.weakened.contains(&lane));
        return (!said).then_some(LaneChange::Weakened { lane, from, to });
    }
    migration.is_none().then_some(LaneChange::Strengthened { lane, from, to })
}

fn described(lane: &LaneSpec) -> String {
    format!("{}{}", if lane.pinned() { "pinned " } else { "" }, lane.kind().attribute())
}

impl Contents {
    /// The window has these lanes.
    pub(crate) fn with_lanes(&mut self, lanes: &'static [LaneSpec]) {
        self.lanes = lanes;
        self.classes = lanes.iter().map(Class::of).collect();
        let spans: Vec<_> = self.table.iter().map(|(span, entry)| (span, entry.lane)).collect();
        self.protected.clear();
        for (span, lane) in spans {
            self.keep_in_mind(span, lane);
        }
    }

    /// Other lanes; `to` has for each lane of before the one it became.
    pub(crate) fn migrate(&mut self, lanes: &'static [LaneSpec], to: &[Option<u16>]) {
        let became = |lane| to.get(usize::from(lane)).copied().flatten().unwrap_or(lane);
        let before: Vec<_> = self.pointer_texts().collect();
        for (_, entry) in self.table.iter_mut() {
            entry.lane = became(entry.lane);
        }
        let mut reads = std::mem::take(&mut self.reads);
        reads.migrate(became, |older, newer| self.is_unseen(older, newer));
        self.reads = reads;
        self.edited();
        self.with_lanes(lanes);
        let other = self.pointer_texts().zip(before).filter(|(now, before)| now != before);
        if let Some(place) = other.map(|((first, _), _)| self.shown_at(first)).min() {
            self.unseal(place);
        }
    }

    /// The line of every pointer, by its first span.
    fn pointer_texts(&self) -> impl Iterator<Item = (SpanId, String)> {
        self.pointers.iter().map(|(first, run)| (first, self.pointer_text(first, run.last)))
    }

    pub(crate) fn spans_in(&self, lane: usize) -> u64 {
        let spans = self.table.iter().filter(|(_, entry)| usize::from(entry.lane) == lane).count();
        u64::try_from(spans).unwrap_or(u64::MAX)
    }
}
