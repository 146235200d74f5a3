//! A log in words: what its numbers refer to, resolved.

use std::sync::Arc;

use serde::Serialize;

use crate::{
    Certainty, Digest, LaneSpec, Origin, PolicyVersion, PruneEvent, Role, SpanId, Tombstone,
    action::{Ending, FailureRecord},
    journal::{Ceiling, Event, Fault, IntentRecord, MutationRecord, SpanRecord, Tables},
    kind::KindId,
    span::Part,
};

/// One commit of an episode.
#[derive(Clone, Debug, Serialize)]
pub struct LogEntry {
    /// Its number, from 0.
    pub record: u64,
    /// Milliseconds since 1970, by the clock of whoever wrote; `None` where there was none.
    pub time: Option<u64>,
    /// How many spans had entered the window before it.
    pub spans: u64,
    /// Tokens pushed since the episode began, after it.
    pub pushed: u64,
    /// What the window takes after it, in tokens, without the budget's fixed part.
    pub utilization: u64,
    /// What happened, in order.
    pub happenings: Vec<Happening>,
}

/// One thing that happened to an episode.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Happening {
    /// The episode began.
    Opened {
        /// The name of the state struct.
        state: String,
        /// Its lanes, with their kinds.
        lanes: Vec<(&'static str, KindId)>,
        /// The policy in force.
        policy: PolicyVersion,
    },
    /// A new owner went on with it: the same program after a stop, or another.
    Resumed {
        /// The name of its state struct.
        state: String,
        /// Whether the owner before it had closed its window: otherwise what it had not committed is lost, if anything.
        clean: bool,
    },
    /// The owner ended its work, with everything on record.
    Closed,
    /// The budget in force, in tokens; all 0 for none.
    Budget {
        /// The most that a request may take.
        limit: u64,
        /// From where on pruning is due.
        trigger: u64,
        /// What every request takes beside the window.
        fixed: u64,
    },
    /// A span became durable.
    #[serde(rename = "externalized")]
    Stored(SpanFacts),
    /// A span left the window: for a pointer, or for a summary.
    #[serde(rename = "evicted")]
    Left(Tombstone),
    /// A summary took the place of its sources.
    Summarized {
        /// The summary.
        summary: SpanFacts,
        /// The spans it stands for.
        sources: Vec<SpanId>,
        /// 1 for a summary of first-hand spans.
        depth: u32,
        /// Why summaries were summarized, where they were.
        escalation: Option<String>,
    },
    /// A summary's sources came back.
    Regrounded {
        /// The summary, which left.
        summary: SpanId,
        /// The spans that came back.
        sources: Vec<SpanId>,
    },
    /// A pointer became text again.
    Restored {
        /// The span.
        span: SpanId,
    },
    /// A span was removed for good before the store had it.
    Discarded {
        /// The span.
        span: SpanFacts,
        /// Why.
        reason: String,
        /// What to do if it is needed.
        recovery: String,
    },
    /// Spans were removed for good, from the store too.
    Redacted {
        /// The spans, ascending.
        spans: Vec<SpanId>,
        /// Why.
        reason: String,
        /// What to do if it is needed.
        recovery: String,
        /// Who took it upon themselves, where a protected lane was redacted.
        authority: Option<String>,
    },
    /// A new model, prompt or policy.
    PolicyChanged {
        /// The one in force from here on.
        policy: PolicyVersion,
    },
    /// The lanes changed.
    Migrated {
        /// Why.
        reason: String,
        /// For each lane before, the one that it became; one that had no spans and went is not in it.
        lanes: Vec<(&'static str, &'static str)>,
    },
    /// An action is about to run.
    Intended {
        /// The action.
        action: String,
        /// What the request is, in words, where its type says so.
        about: Option<String>,
        /// Its request.
        signature: Digest,
        /// The number of the attempt, 1 for the first.
        attempt: u64,
        /// The lanes it requires.
        requires: Vec<&'static str>,
        /// What justifies it.
        evidence: Vec<SpanId>,
        /// What a person consented in.
        consent: Option<SpanId>,
        /// Why it runs although its signature is on record.
        repeats: Option<String>,
        /// Why it runs on a window that is lossy.
        lossy: Option<String>,
    },
    /// An action was done.
    Done {
        /// The action.
        action: String,
        /// Its request.
        signature: Digest,
        /// The number of the attempt.
        attempt: u64,
        /// SHA-256 of what it gave.
        sha256: Digest,
        /// How that is known, where it was settled later.
        how: Option<String>,
    },
    /// An action failed without effect, or was refused.
    Failed {
        /// The action.
        action: String,
        /// Its request.
        signature: Digest,
        /// The number of the attempt.
        attempt: u64,
        /// Why.
        why: String,
        /// Whether somebody refused it.
        refused: bool,
        /// When it may be tried again, in milliseconds since 1970.
        until: Option<u64>,
        /// The span that shows it.
        shown_in: Option<SpanId>,
    },
    /// An attempt was found to have had no effect.
    NotDone {
        /// The action.
        action: String,
        /// Its request.
        signature: Digest,
        /// The number of the attempt.
        attempt: u64,
        /// How that is known.
        how: String,
    },
    /// An attempt failed, and whether it took effect is open.
    Doubted {
        /// The action.
        action: String,
        /// Its request.
        signature: Digest,
        /// The number of the attempt.
        attempt: u64,
        /// Why.
        why: String,
    },
    /// A call was given up: whether it took effect is unknown.
    Abandoned {
        /// The span that made it.
        turn: SpanId,
        /// The provider's id of it.
        call: Arc<str>,
        /// The span that stands for its result.
        result: SpanFacts,
        /// Why.
        reason: String,
    },
    /// What pruning did, or cost.
    #[serde(rename = "pruning")]
    Pruning(PruneEvent),
}

/// What is recorded of a span, beside its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SpanFacts {
    /// The span.
    pub span: SpanId,
    /// Its lane.
    pub lane: &'static str,
    /// The kind of that lane.
    pub kind: KindId,
    /// Who said it.
    pub origin: Origin,
    /// Under which role it is sent.
    pub role: Role,
    /// The tool it came from.
    pub name: Option<Arc<str>>,
    /// Where it stands, in tokens pushed before it.
    pub start: u64,
    /// Its tokens.
    pub tokens: u32,
    /// How far that count can be trusted.
    pub certainty: Certainty,
    /// SHA-256 of its bytes; `None` for one that was removed before the store had it, unless by
    /// [`Mutation::with_digest`](crate::Mutation::with_digest).
    pub sha256: Option<Digest>,
    /// Its bytes.
    pub bytes: u64,
    /// Whether they are text.
    pub text: bool,
    /// What it read, where it said so.
    pub reads: Option<Arc<str>>,
    /// Whether it is the result of a call that failed.
    pub failed: bool,
}

/// Where a span is now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Standing {
    /// In the window.
    Resident,
    /// A pointer stands in its place.
    Pointer,
    /// A summary stands in its place.
    Replaced {
        /// The summary.
        by: SpanId,
    },
    /// A summary whose sources came back, or that was summarized itself.
    Retired,
    /// Removed for good.
    Gone {
        /// Why.
        reason: String,
        /// What to do if it is needed.
        recovery: String,
    },
    /// It entered, and no commit had it when its process ended.
    Unrecorded,
}

impl SpanFacts {
    pub(super) fn of(record: SpanRecord, tables: &Tables) -> Result<Self, Fault> {
        let lane = tables.lane(record.lane).ok_or(Fault::Unknown { what: "lane" })?;
        let name = record.name.map(|name| tables.name(name).cloned().ok_or(Fault::Unknown { what: "tool name" }));
        let SpanRecord { span, origin, role, start, tokens, certainty, sha256, bytes, text, reads, failed, .. } =
            record;
        let (lane, kind, name) = (lane.name(), lane.kind(), name.transpose()?);
        Ok(Self { span, lane, kind, origin, role, name, start, tokens, certainty, sha256, bytes, text, reads, failed })
    }
}

impl Happening {
    /// An event in words; `None` where it says nothing to a reader. `tables` are as they were before it.
    pub(super) fn of(event: Event, tables: &mut Tables) -> Result<Option<Self>, Fault> {
        let before = tables.lanes();
        tables.follow(&event);
        let mutation = |mutation: MutationRecord| (mutation.reason, mutation.recovery);
        Ok(Some(match event {
            Event::Opened { state, policy, .. } => {
                let lanes = tables.lanes().iter().map(|lane| (lane.name(), lane.kind())).collect();
                Self::Opened { state, lanes, policy }
            }
            Event::Resumed { state, clean } => Self::Resumed { state, clean },
            Event::Closed => Self::Closed,
            Event::Intended(record) => {
                let requires = record.requires.iter().filter_map(|lane| Some(tables.lane(*lane)?.name())).collect();
                let IntentRecord { signature, attempt, action, about, evidence, consent, repeats, lossy, .. } = record;
                Self::Intended { action, about, signature, attempt, requires, evidence, consent, repeats, lossy }
            }
            Event::Doubted { signature, attempt, action, why } => Self::Doubted { action, signature, attempt, why },
            Event::Ended { signature, attempt, action, ending } => match ending {
                Ending::Done { sha256, how, .. } => Self::Done { action, signature, attempt, sha256, how },
                Ending::Failed(failure) => {
                    let FailureRecord { why, refused, until, shown_in, .. } = failure;
                    Self::Failed { action, signature, attempt, why, refused, until, shown_in }
                }
                Ending::NotDone { how, .. } => Self::NotDone { action, signature, attempt, how },
            },
            Event::Limited(ceiling) => {
                let Ceiling { limit, trigger, fixed } = ceiling.unwrap_or_default();
                Self::Budget { limit, trigger, fixed }
            }
            Event::Externalized(span) => Self::Stored(SpanFacts::of(span, tables)?),
            Event::Evicted(record) => {
                let unknown = Fault::Unknown { what: "lane, tool name or policy" };
                Self::Left(tables.tombstone(record).ok_or(unknown)?)
            }
            Event::Pointed(_) => return Ok(None),
            Event::Summarized { summary, sources, depth, escalation } => {
                Self::Summarized { summary: SpanFacts::of(summary, tables)?, sources, depth, escalation }
            }
            Event::Regrounded { summary, sources } => Self::Regrounded { summary, sources },
            Event::Restored { span } => Self::Restored { span },
            Event::Discarded { span, mutation: why } => {
                let (reason, recovery) = mutation(why);
                Self::Discarded { span: SpanFacts::of(span, tables)?, reason, recovery }
            }
            Event::Redacted { spans, mutations, authority } => {
                let (reason, recovery) = mutations.into_iter().next().map(mutation).unwrap_or_default();
                Self::Redacted { spans, reason, recovery, authority }
            }
            Event::PolicyChanged(policy) => Self::PolicyChanged { policy },
            Event::Migrated { reason, to, .. } => {
                let name = |lane: Option<&LaneSpec>| lane.map_or("?", LaneSpec::name);
                let became = before.iter().zip(to).filter_map(|(lane, to)| Some((lane.name(), name(tables.lane(to?)))));
                let became = became.collect();
                Self::Migrated { reason, lanes: became }
            }
            Event::Abandoned { result, reason } => {
                let (turn, call) = match &result.part {
                    Part::Lost(turn, call) => (*turn, call.clone()),
                    _ => return Err(Fault::Unknown { what: "call" }),
                };
                Self::Abandoned { turn, call, result: SpanFacts::of(result, tables)?, reason }
            }
            Event::Booked { note, .. } => match note.event() {
                Some(event) => Self::Pruning(event),
                None => return Ok(None),
            },
        }))
    }
}
