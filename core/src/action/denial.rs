//! What an action depends on and the window does not show (rule R17).

use std::{cell::Cell, collections::BTreeSet, fmt};

use super::{Action, PermitError, Requirement, record::FailureRecord};
use crate::{
    Digest, Fidelity, SpanId,
    kind::{Kind as _, NegativeResult},
    pointer::Ids,
    window::{contents::Contents, fidelity, table::Residency},
};

/// Why an action is denied, by span and lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial(Box<Missing>);

/// Out of line: it is what an error carries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Missing {
    action: &'static str,
    evicted: Vec<SpanId>,
    replaced: Vec<(SpanId, SpanId)>,
    lost: Vec<SpanId>,
    unrecorded: Vec<SpanId>,
    empty: Vec<&'static str>,
    contradicted: Vec<(SpanId, SpanId)>,
    mismatch: Option<String>,
    lossy: Option<String>,
}

impl Denial {
    /// Spans of required lanes that are pointers now: [`bring_back`](super::Withheld::bring_back) restores them.
    pub fn evicted(&self) -> &[SpanId] {
        &self.0.evicted
    }

    /// Spans of required lanes that a summary took the place of before the lane was a protected one, each with that summary:
    /// [re-ground](crate::Lane::reground) it. No summary stands in for what an action requires (rule R3).
    pub fn replaced(&self) -> &[(SpanId, SpanId)] {
        &self.0.replaced
    }

    /// Spans of required lanes that were removed for good; the window is lossy by that.
    pub fn lost(&self) -> &[SpanId] {
        &self.0.lost
    }

    /// Spans that entered before a stop and whose text no commit has: they may have been of a required lane.
    pub fn unrecorded(&self) -> &[SpanId] {
        &self.0.unrecorded
    }

    /// Required lanes that hold nothing, or only results that failed or are not final: what the action depends on was never
    /// observed.
    pub fn empty(&self) -> &[&'static str] {
        &self.0.empty
    }

    /// Observations that left the window, each with a newer one of the same subject that says something else: nobody has seen
    /// both. [`bring_back`](super::Withheld::bring_back) restores the older ones.
    pub fn contradicted(&self) -> &[(SpanId, SpanId)] {
        &self.0.contradicted
    }

    /// What [`Action::check`] said.
    pub fn mismatch(&self) -> Option<&str> {
        self.0.mismatch.as_deref()
    }

    /// Why the window is lossy, where that is not accepted.
    pub fn lossy(&self) -> Option<&str> {
        self.0.lossy.as_deref()
    }

    /// What a step brings back.
    pub(super) fn away(&self) -> Vec<SpanId> {
        let mut away: Vec<_> =
            self.0.evicted.iter().copied().chain(self.0.contradicted.iter().map(|(older, _)| *older)).collect();
        away.sort_unstable();
        away.dedup();
        away
    }
}

impl std::error::Error for Denial {}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(missing) = self;
        write!(f, "`{}` is denied", missing.action)?;
        let mut sign = ":";
        let mut say = |what: fmt::Arguments<'_>| {
            let said = write!(f, "{sign} {what}");
            sign = ";";
            said
        };
        if !missing.evicted.is_empty() {
            say(format_args!("{} left the window, `bring_back` restores", Ids(&missing.evicted)))?;
        }
        for (span, summary) in &missing.replaced {
            say(format_args!("{span} is in the window as the summary {summary} alone: re-ground that"))?;
        }
        for (older, newer) in &missing.contradicted {
            say(format_args!("{newer} contradicts {older}, which left the window before: `bring_back`, and compare"))?;
        }
        for lane in &missing.empty {
            say(format_args!(
                "`{lane}` holds nothing that was observed: observe what the action depends on, and push it there"
            ))?;
        }
        if let Some(mismatch) = &missing.mismatch {
            say(format_args!("{mismatch}"))?;
        }
        if !missing.lost.is_empty() {
            say(format_args!("{} was removed for good", Ids(&missing.lost)))?;
        }
        if !missing.unrecorded.is_empty() {
            say(format_args!(
                "{} was lost with a process that stopped, and may have been required",
                Ids(&missing.unrecorded)
            ))?;
        }
        if let Some(lossy) = &missing.lossy {
            say(format_args!(
                "the window is lossy ({lossy}): `accept_lossy(AcceptLossy::because(..)?)` if that does not matter"
            ))?;
        }
        Ok(())
    }
}

/// The texts that the required lanes hold, for [`Action::check`].
pub struct Held<'a> {
    contents: &'a Contents,
    lanes: &'a [u16],
    /// A lane that was asked for and is not required.
    unknown: Cell<Option<Box<str>>>,
}

impl fmt::Debug for Held<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("lanes", &self.lanes).finish_non_exhaustive()
    }
}

impl<'a> Held<'a> {
    /// The texts of a required lane that are in the window, oldest first, but for those that a newer observation of the same
    /// subject took the place of. O(spans of the lane).
    pub fn texts(&self, lane: &str) -> impl Iterator<Item = &'a str> {
        let Self { contents, lanes, ref unknown } = *self;
        let named = lanes.iter().copied().find(|at| contents.lane(*at).is_some_and(|spec| spec.name() == lane));
        if named.is_none() {
            unknown.set(Some(lane.into()));
        }
        let spans = named.into_iter().flat_map(|lane| contents.protected.get(&lane)).flatten();
        let current = spans.filter(|span| contents.reads.superseded_by(**span).is_none());
        current.filter_map(|span| contents.table.get(*span)?.content.as_ref()?.as_text())
    }

    /// Whether a text of a required lane has `value` in it as a whole word: `db-1` is in "target: db-1.", and not in "db-10". It
    /// reads no sense: "not db-1" has it too.
    pub fn names(&self, lane: &str, value: &str) -> bool {
        self.texts(lane).any(|text| has_word(text, value))
    }
}

/// Whether `word` is in `text` with neither letter, digit, `-`, `_` nor `/` beside it, nor a `.` that goes on.
fn has_word(text: &str, word: &str) -> bool {
    fn goes_on(mut rest: impl Iterator<Item = char>) -> bool {
        match rest.next() {
            Some('.') => rest.next().is_some_and(char::is_alphanumeric),
            next => next.is_some_and(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '/')),
        }
    }
    let alone = |at: usize| {
        let (before, after) = (text.get(..at), text.get(at.saturating_add(word.len())..));
        !goes_on(before.unwrap_or_default().chars().rev()) && !goes_on(after.unwrap_or_default().chars())
    };
    !word.is_empty() && text.match_indices(word).any(|(at, _)| alone(at))
}

/// What of the required lanes is in the window, and what not. O(spans of those lanes).
pub(super) fn denial<A: Action>(action: &A, lanes: &[u16], lossy: bool, contents: &Contents) -> Option<Denial> {
    let mut missing = Box::new(Missing { action: A::NAME, ..Missing::default() });
    for lane in lanes {
        let failures_count = contents.lane(*lane).is_some_and(|lane| lane.kind() == NegativeResult::ID);
        let mut is_empty = true;
        for span in contents.protected.get(lane).into_iter().flatten() {
            let Some(entry) = contents.table.get(*span) else { continue };
            match (entry.residency, contents.reads.superseded_by(*span)) {
                (Residency::Resident, _) => {}
                (Residency::Evicted, None) => missing.evicted.push(*span),
                (Residency::Replaced, None) => missing.replaced.push((*span, contents.summary_of(*span))),
                (Residency::Discarded, None) if !lossy => missing.lost.push(*span),
                _ => continue,
            }
            // A call that failed, or goes on, has observed nothing yet.
            is_empty &= (contents.failed.contains(span) && !failures_count) || contents.exchanges.is_unfinished(*span);
        }
        missing.contradicted.extend(contents.contradicted(*lane));
        if is_empty {
            missing.empty.extend(contents.lane(*lane).map(crate::LaneSpec::name));
        }
    }
    if !lossy {
        missing.unrecorded = contents.gaps.iter().copied().collect();
        missing.lossy = match fidelity(contents) {
            Fidelity::Reversible => (!missing.unrecorded.is_empty()).then(|| "spans were lost".to_owned()),
            Fidelity::Lossy { why, .. } => Some(why),
        };
    }
    let held = Held { contents, lanes, unknown: Cell::default() };
    missing.mismatch = action.check(&held).err();
    if let Some(lane) = held.unknown.take() {
        missing.mismatch = Some(format!(
            "its `check` asks for the lane `{lane}`, which it does not require: add it to `requires(..)`"
        ));
    }
    (*missing != Missing { action: A::NAME, ..Missing::default() }).then_some(Denial(missing))
}

/// What each required lane holds now, as a digest over its spans': it changes with each new observation, and with none
/// that says the same. O(spans of those lanes).
pub(super) fn versions(lanes: &[u16], contents: &Contents) -> Vec<(String, Digest)> {
    let version = |lane: &u16| Some((contents.lane(*lane)?.name().to_owned(), version(*lane, contents)));
    lanes.iter().filter_map(version).collect()
}

fn version(lane: u16, contents: &Contents) -> Digest {
    // Each text once, in no order: what is observed again says nothing new.
    let mut held = BTreeSet::new();
    for span in contents.protected.get(&lane).into_iter().flatten() {
        let Some(entry) = contents.table.get(*span).filter(|_| contents.reads.superseded_by(*span).is_none()) else {
            continue;
        };
        held.insert(match &entry.content {
            Some(content) if !entry.durable => Digest::of(content.as_bytes()),
            _ => entry.digest,
        });
    }
    Digest::of(&held.iter().flat_map(|digest| *digest.as_bytes()).collect::<Vec<_>>())
}

/// Whether a failure still holds in this window, at `now` in milliseconds since 1970.
pub(super) fn still_holds(failure: &FailureRecord, contents: &Contents, now: u64) -> bool {
    let changed = |(name, under): &(String, Digest)| {
        let at = contents.lanes.iter().position(|lane| lane.name() == name);
        let lane = at.and_then(|at| u16::try_from(at).ok());
        lane.is_some_and(|lane| version(lane, contents) != *under)
    };
    failure.refused || !(failure.until.is_some_and(|until| until <= now) || failure.under.iter().any(changed))
}

/// The numbers of the lanes that an action requires.
pub(super) fn lanes<A: Action>() -> Result<Vec<u16>, PermitError> {
    let number = |required: &Requirement| {
        let none = PermitError::NoLane { action: A::NAME, lane: required.name };
        required.lane_of::<A::State>().ok_or(none)
    };
    A::REQUIRES.iter().map(number).collect()
}
