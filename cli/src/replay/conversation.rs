//! One conversation in a window, with a plain pruner, a guard and the agent's own context beside it.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    thread,
};

use keepspan::{
    AbandonError, Abandonment, Advice, Episode, FallBackError, FellBack, Outcome as Applied, PushError, Signature,
    SpanId, Tombstone, tool::Answer,
};
use keepspan_sessions::{Compaction, Entry, EntryKind, Place};
use serde_json::Value;

use super::{
    ahead::Told,
    calls::Calls,
    late::{LastSeen, mentioned},
    mentions::hash,
    outcome::{BACK, Late, Outcome, Reference, Resident, Scripted, Share},
    own::Context,
    prune::{self, Session},
    run::{Settings, Shared},
    script::Ask,
    state::Act,
};
use crate::{
    failure::Failure,
    report::story::{Mark, MarkKind, Moment, number},
    words::{count, several},
};

/// References that are listed.
const LISTED: usize = 20;
/// Points of the chart; beyond, two become one.
const MOMENTS: usize = 4_096;
/// Spans from which two threads bring them back.
const MANY: usize = 256;
/// Marks of a point.
const MARKS: usize = 6;

/// What is kept of an entry, whose text is in the window or the store.
struct Known {
    span: Option<SpanId>,
    line: u64,
    /// The tokens before it.
    start: u64,
    tokens: u64,
    tool: Option<Arc<str>>,
    kind: EntryKind,
    /// Of its text, from the file; none of a picture.
    hash: Option<u64>,
    evicted: bool,
    /// The first entry of the turn that it belongs to, its calls' results too.
    turn: usize,
}

impl Known {
    /// A tool, or who said it.
    fn from(&self) -> &str {
        let who = match self.kind {
            EntryKind::System => "system",
            EntryKind::Human => "human",
            EntryKind::Notice => "notice",
            EntryKind::Thinking => "thinking",
            EntryKind::Result => "result",
            _ => "model",
        };
        self.tool.as_deref().unwrap_or(who)
    }
}

/// What becomes of a lane's spans.
enum Lane {
    Instruction,
    Protected,
    Free,
}

/// A plain pruner: which entries it dropped.
#[derive(Default)]
struct Dropping {
    /// The first entry that is there.
    first: usize,
    tokens: u64,
}

/// One conversation.
pub struct Running<'a> {
    settings: &'a Settings,
    window: Session<Shared>,
    known: Vec<Known>,
    entries: HashMap<SpanId, usize>,
    calls: Calls,
    seen: LastSeen,
    plain: Dropping,
    context: Context,
    out: Outcome,
    marks: Vec<Mark>,
    /// Whether the model spoke last.
    speaking: bool,
    /// The first entry of its turn.
    first: usize,
    /// Whether the gate was asked since the trigger was reached.
    asked: bool,
    /// What the request has to come to before it is tried again, where nothing could leave.
    idle_until: u64,
    /// How many turns a point of the chart stands for.
    stride: u64,
}

impl<'a> Running<'a> {
    /// Opens its window.
    ///
    /// # Errors
    /// When the store refuses it.
    pub fn open(settings: &'a Settings, store: Shared, name: String, line: u64) -> Result<Self, Failure> {
        let episode = Episode::new(name.as_str(), "replay").budget(settings.limits).trust_estimates();
        let window = Session::open_with(store, episode, settings.counter.clone()).map_err(replay)?;
        Ok(Self {
            settings,
            window,
            known: Vec::new(),
            entries: HashMap::new(),
            calls: Calls::default(),
            seen: LastSeen::default(),
            plain: Dropping::default(),
            context: Context::default(),
            out: Outcome { name, line, ..Outcome::default() },
            marks: Vec::new(),
            speaking: false,
            first: 0,
            asked: false,
            idle_until: 0,
            stride: 1,
        })
    }

    /// Takes an entry in, with the hashes of all mentions.
    ///
    /// # Errors
    /// When the window or the store fails.
    pub fn entry(&mut self, told: &Told, hashes: &[u64]) -> Result<(), Failure> {
        let Told { entry, hash, mentions } = told;
        let speaks = matches!(entry.kind, EntryKind::Model | EntryKind::Thinking);
        if speaks && !self.speaking {
            self.turn(entry.place)?;
        }
        let at = self.known.len();
        if speaks && !self.speaking {
            self.first = at;
        }
        self.speaking = speaks;
        for call in &entry.calls {
            // What is no JSON is one text.
            let arguments = call.json().unwrap_or_else(|| Value::String(call.arguments.to_string()));
            let act = Act::of(&call.name);
            self.mentions(act, &call.name, &mentioned(&arguments), entry.place.line);
            let signature = (act != Act::Read).then(|| Signature::of(&call.name, &arguments));
            if let Some(first) = self.calls.made(at, entry.place.line, call, signature) {
                let what = || format!("`{}` again, as in line {first}, where it succeeded", call.name);
                self.mark(MarkKind::Repeated, what);
            }
        }
        let asked_by = entry.answers.as_ref().filter(|_| !entry.orphan);
        let asked_by = asked_by.and_then(|call| self.calls.answered(call, entry.failed));
        let before = self.window.utilization();
        let span = self.push(entry, asked_by)?;
        let tokens = match span {
            Some(_) => self.window.utilization().saturating_sub(before),
            None => self.settings.count(&entry.text),
        };
        self.seen.see(hashes.get(mentions.clone()).unwrap_or_default(), at);
        self.known.push(Known {
            span,
            line: entry.place.line,
            start: self.out.tokens,
            tokens,
            tool: entry.tool.clone(),
            kind: entry.kind,
            hash: *hash,
            evicted: false,
            turn: asked_by
                .and_then(|at| self.known.get(at))
                .map_or(if speaks { self.first } else { at }, |turn| turn.turn),
        });
        if let Some(span) = span {
            self.entries.insert(span, at);
        }
        self.context.enter(at, tokens, entry);
        self.out.entries = number(self.known.len());
        self.out.tokens = self.out.tokens.saturating_add(tokens);
        self.plain.tokens = self.plain.tokens.saturating_add(tokens);
        self.scripted()
    }

    /// Pushes an entry; `None` where it is larger than the whole budget, so that nothing of it can be sent.
    fn push(&mut self, entry: &Entry, asked_by: Option<usize>) -> Result<Option<SpanId>, Failure> {
        match prune::push(&mut self.window, &entry.span, entry.answers.as_ref()) {
            Ok(span) => return Ok(Some(span)),
            Err(PushError::LargerThanBudget { .. }) => {}
            Err(error) => return Err(Failure::Replay(format!("line {}: {error}", entry.place.line))),
        }
        let kept = &mut self.out.keepspan;
        kept.too_large = kept.too_large.saturating_add(1);
        kept.too_large_at.get_or_insert(entry.place.line);
        let turn = asked_by.and_then(|at| self.known.get(at)).and_then(|turn| turn.span);
        if let (Some(turn), Some(call)) = (turn, &entry.answers) {
            let why = Abandonment::because("its result is larger than the budget").map_err(replay)?;
            match self.window.abandon(turn, call.clone(), why).wait() {
                // Of a result in parts, each can be too large.
                Ok(_) | Err(AbandonError::Selection(_) | AbandonError::NotOpen { .. }) => {}
                Err(error) => return Err(replay(error)),
            }
        }
        Ok(None)
    }

    /// The model is about to be asked.
    fn turn(&mut self, place: Place) -> Result<(), Failure> {
        self.calls.next_turn();
        self.out.turns = self.out.turns.saturating_add(1);
        let fixed = self.settings.budget.fixed();
        self.out.full.sent(self.out.tokens.saturating_add(fixed));
        self.drop_oldest();
        self.out.plain.sizes.sent(self.plain.tokens.saturating_add(fixed));
        self.prune()?;
        let (request, limit) = (self.request(), self.settings.budget.limit());
        self.out.keepspan.sizes.sent(request);
        if request > limit {
            let kept = &mut self.out.keepspan;
            kept.unfittable = kept.unfittable.saturating_add(1);
            kept.unfittable_at.get_or_insert((place.line, request));
        }
        self.moment(request);
        Ok(())
    }

    fn request(&self) -> u64 {
        self.window.utilization().saturating_add(self.settings.budget.fixed())
    }

    fn drop_oldest(&mut self) {
        let (budget, out) = (self.settings.budget, &mut self.out.plain);
        while self.plain.tokens.saturating_add(budget.fixed()) >= budget.trigger() {
            let Some(oldest) = self.known.get(self.plain.first) else { return };
            self.plain.first = self.plain.first.saturating_add(1);
            if oldest.kind != EntryKind::System {
                self.plain.tokens = self.plain.tokens.saturating_sub(oldest.tokens);
                out.dropped = out.dropped.saturating_add(1);
                out.dropped_tokens = out.dropped_tokens.saturating_add(oldest.tokens);
            }
        }
    }

    /// As an agent of keepspan whose model never answers: the gate is asked at the trigger, and where no model may decide,
    /// what the policy takes first leaves.
    fn prune(&mut self) -> Result<(), Failure> {
        let (request, budget) = (self.request(), self.settings.budget);
        if request < budget.trigger() {
            (self.asked, self.idle_until) = (false, 0);
            return Ok(());
        }
        let in_band = budget.limit().saturating_sub(request.min(budget.limit())) < budget.decision();
        if request < self.idle_until || self.asked && !in_band {
            return Ok(());
        }
        self.asked = true;
        let lanes = self.window.lanes().externalize().wait().map_err(replay)?;
        // Where deciding takes more than is free, the gate says no whatever there is to prune.
        if !in_band && matches!(lanes.advice(), Advice::Prune(_) | Advice::MayPrune(_)) {
            self.out.keepspan.admitted = self.out.keepspan.admitted.saturating_add(1);
            return Ok(());
        }
        let fell = match lanes.admit() {
            Ok(pass) => prune::decline(pass, self.settings.policy),
            Err(refusal) => {
                let reason = refusal.reason().reason();
                let refused = self.out.keepspan.refused.entry(reason).or_default();
                *refused = refused.saturating_add(1);
                prune::fall_back(refusal, self.settings.policy)
            }
        };
        match fell {
            Ok(FellBack::Freed(report)) => {
                self.out.keepspan.fallbacks = self.out.keepspan.fallbacks.saturating_add(1);
                let (spans, after) = (number(report.tombstones().len()), report.pass().after);
                let what =
                    || format!("{} left, from {} to {} tokens", several(spans, "span"), count(request), count(after));
                self.mark(MarkKind::Fallback, what);
                self.evicted(report.tombstones());
            }
            Ok(_) => self.idle(),
            Err(FallBackError::Unfittable { needed, .. }) => {
                // A real agent would have to stop here. What may leave leaves all the same, and the turn counts as over.
                let gone = prune::leave(&mut self.window, 0).map_err(replay)?;
                let what = || format!("cannot be made to fit: {} tokens may not leave", count(needed));
                self.mark(MarkKind::Refusal, what);
                self.evicted(&gone);
                self.idle();
            }
            Err(error) => return Err(replay(error)),
        }
        Ok(())
    }

    /// Nothing more may leave: it is tried again over the limit, where protected spans may; and of a window that is over it, when
    /// that has grown by a quarter.
    fn idle(&mut self) {
        let (limit, request) = (self.settings.budget.limit(), self.request());
        self.idle_until = if request > limit { request.saturating_add(request / 4) } else { limit.saturating_add(1) };
    }

    fn evicted(&mut self, gone: &[Tombstone]) {
        for tombstone in gone {
            // What the window says of an abandoned call is no entry.
            let known = self.entries.get(&tombstone.span()).and_then(|at| self.known.get_mut(*at));
            let Some(known) = known else { continue };
            known.evicted = true;
            let kept = &mut self.out.keepspan;
            kept.evicted = kept.evicted.saturating_add(1);
            kept.evicted_tokens = kept.evicted_tokens.saturating_add(tombstone.tokens());
        }
    }

    /// What a call mentions, and where that was seen last.
    fn mentions(&mut self, act: Act, tool: &str, mentioned: &[(u64, &str)], line: u64) {
        let now = self.out.tokens;
        let (mut farthest, mut dropped) = (None::<u64>, false);
        let mut gone: Option<(u64, usize, &str)> = None;
        let mut evicted = false;
        for (hash, mention) in mentioned {
            let Some((at, known)) = self.seen.last(*hash).and_then(|at| Some((at, self.known.get(at)?))) else {
                continue;
            };
            let distance = now.saturating_sub(known.start);
            farthest = farthest.max(Some(distance));
            let by_plain = at < self.plain.first && known.kind != EntryKind::System;
            dropped |= by_plain;
            evicted |= known.evicted;
            if (by_plain || known.evicted) && gone.is_none_or(|(farthest, ..)| distance > farthest) {
                gone = Some((distance, at, mention));
            }
            self.context.mentioned(*hash, at, act);
        }
        let late = &mut self.out.late;
        late.calls = late.calls.saturating_add(u64::from(farthest.is_some()));
        if let Some(farthest) = farthest.filter(|_| act == Act::Write) {
            late.writes = late.writes.saturating_add(1);
            for (times, back) in late.back.iter_mut().zip(BACK) {
                *times = times.saturating_add(u64::from(farthest > back));
            }
        }
        if dropped {
            late.plain.count(act);
        }
        if evicted {
            late.keepspan.count(act);
        }
        let Some((distance, at, mention)) = gone else { return };
        let Some(known) = self.known.get(at) else { return };
        if !self.has_room() && !lists(&self.out.late, distance) {
            return;
        }
        let what = format!(
            "`{tool}` mentions {mention}, seen last {} tokens before, in line {}: {}",
            count(distance),
            known.line,
            if known.evicted { "a pointer stands there" } else { "still in the window" }
        );
        let reference = Reference {
            line,
            tool: tool.to_owned(),
            act,
            mention: mention.to_owned(),
            distance,
            span: known.span.map(SpanId::number),
            from: known.from().to_owned(),
            from_line: known.line,
            plain_dropped: at < self.plain.first && known.kind != EntryKind::System,
            keepspan_evicted: known.evicted,
        };
        list(&mut self.out.late, reference);
        self.mark(MarkKind::Late, || what);
    }

    /// The agent pruned its own context.
    ///
    /// # Errors
    /// When keepspan failed beside it.
    pub fn compacted(&mut self, compaction: &Compaction) -> Result<(), Failure> {
        let what = self.context.compacted(compaction, self.settings)?;
        self.mark(MarkKind::Compacted, || what);
        Ok(())
    }

    /// What the script asks for now.
    fn scripted(&mut self) -> Result<(), Failure> {
        let settings = self.settings;
        let due = |ask: &&Ask| {
            ask.after == self.out.entries && ask.conversation.as_ref().is_none_or(|name| *name == self.out.name)
        };
        let due: Vec<_> = settings.script.iter().filter(due).collect();
        for ask in due {
            let (left, refused, by_gate) = self.ask(&ask.evict)?;
            let (after, evict) = (ask.after, ask.evict.clone());
            self.out.script.push(Scripted { after, evict, left, refused, by_gate });
        }
        Ok(())
    }

    /// Proposes through a pass; how many spans left, or why none did and whether it was the gate that said no.
    fn ask(&mut self, names: &[String]) -> Result<(u64, Option<String>, bool), Failure> {
        let lanes = self.window.lanes().externalize().wait().map_err(replay)?;
        let refused = |why: String, by_gate| Ok((0, Some(why), by_gate));
        let pass = match lanes.admit() {
            Ok(pass) => pass,
            Err(refusal) => {
                let reason = refusal.into_reason();
                let times = self.out.keepspan.refused.entry(reason.reason()).or_default();
                *times = times.saturating_add(1);
                self.mark(MarkKind::Refusal, || format!("the script's answer was not asked for: {reason}"));
                return refused(reason.to_string(), true);
            }
        };
        let proposal = match pass.parse(&Answer::prune(names.iter().cloned())) {
            Ok(proposal) => proposal,
            Err(error) => {
                drop(pass);
                self.mark(MarkKind::Refusal, || format!("the script's answer was refused: {error}"));
                return refused(error.to_string(), false);
            }
        };
        match pass.apply(proposal).wait() {
            Ok(Applied::Pruned(report)) => {
                let left = number(report.tombstones().len());
                self.mark(MarkKind::Pass, || format!("the script's answer took {} out", several(left, "span")));
                self.evicted(report.tombstones());
                Ok((left, None, false))
            }
            Ok(Applied::Unchanged) => Ok((0, None, false)),
            Err(keepspan::ApplyError::Commit(error)) => Err(replay(error)),
            Err(error) => refused(error.to_string(), false),
        }
    }

    fn mark(&mut self, kind: MarkKind, what: impl FnOnce() -> String) {
        if self.has_room() {
            self.marks.push(Mark { kind, what: what() });
        }
    }

    /// Whether one more mark is told: the point of the chart that it comes to may have all of its own.
    fn has_room(&self) -> bool {
        let next = self.out.turns.saturating_add(1);
        let point = self.out.moments.last().filter(|last| next.saturating_sub(last.turn) < self.stride);
        self.marks.len().saturating_add(point.map_or(0, |point| point.marks.len())) < MARKS
    }

    /// A point of the chart, in which marks since the last one are told.
    fn moment(&mut self, utilization: u64) {
        let (entry, turn) = (self.out.entries, self.out.turns);
        let mut marks = std::mem::take(&mut self.marks);
        marks.truncate(MARKS);
        let moments = &mut self.out.moments;
        match moments.last_mut().filter(|last| turn.saturating_sub(last.turn) < self.stride) {
            Some(last) => join(last, utilization, marks),
            None => moments.push(Moment { entry, turn, time: None, utilization, marks }),
        }
        if moments.len() >= MOMENTS {
            self.stride = self.stride.saturating_mul(2);
            let mut all = std::mem::take(moments).into_iter();
            while let Some(mut one) = all.next() {
                if let Some(other) = all.next() {
                    join(&mut one, other.utilization, other.marks);
                }
                moments.push(one);
            }
        }
    }

    /// The conversation ended: everything that left is brought back and compared.
    ///
    /// # Errors
    /// When the store fails.
    pub fn finish(mut self, kept: bool) -> Result<Outcome, Failure> {
        self.moment(self.request());
        self.recall()?;
        self.out.keepspan.resident = self.resident();
        self.out.keepspan.saved = self.out.full.sent.saturating_sub(self.out.keepspan.sizes.sent);
        self.out.repeated = self.calls.finish();
        self.out.own = self.context.finish();
        if kept {
            drop(self.window.close().map_err(replay)?);
        }
        Ok(self.out)
    }

    /// Why each span that is in the window is there.
    fn resident(&mut self) -> Resident {
        let open = self.window.open_calls();
        let entry = |span: &SpanId| self.entries.get(span).and_then(|at| self.known.get(*at));
        let pending: HashSet<_> = open.iter().filter_map(|call| Some(entry(&call.span)?.turn)).collect();
        let oldest_kept = self.out.tokens.saturating_sub(self.settings.budget.keep());
        let pointer = self.window.prices().pointer;
        let mut resident = Resident { pointers: self.window.utilization(), ..Resident::default() };
        let lanes = self.window.lanes();
        let asked = lanes.asked.resident().into_iter().map(|span| (span, Lane::Instruction));
        let protected = [lanes.failed.resident(), lanes.effects.resident()].concat();
        let protected = protected.into_iter().map(|span| (span, Lane::Protected));
        let free = [lanes.observed.resident(), lanes.said.resident()].concat();
        let free = free.into_iter().map(|span| (span, Lane::Free));
        for (span, lane) in asked.chain(protected).chain(free) {
            // What the window says of an abandoned call is no entry.
            let Some(known) = entry(&span) else { continue };
            let why = match lane {
                Lane::Instruction => &mut resident.instructions,
                _ if pending.contains(&known.turn) => &mut resident.pending,
                _ if known.start.saturating_add(known.tokens) > oldest_kept => &mut resident.recent,
                _ if known.tokens <= pointer => &mut resident.small,
                Lane::Protected => &mut resident.protected,
                Lane::Free => &mut resident.room,
            };
            why.add(Share { spans: 1, tokens: known.tokens });
            resident.pointers = resident.pointers.saturating_sub(known.tokens);
        }
        resident
    }

    fn recall(&mut self) -> Result<(), Failure> {
        let evicted = self.known.iter().filter(|known| known.evicted);
        let evicted: Vec<_> = evicted.filter_map(|known| Some((known.span?, known.hash))).collect();
        let half = if evicted.len() < MANY { 0 } else { evicted.len() / 2 };
        let (first, rest) = evicted.split_at_checked(half).unwrap_or_default();
        let window = &self.window;
        // Nothing is read any more, so that two threads are free.
        let halves = thread::scope(|scope| {
            let beside =
                (!first.is_empty()).then(|| thread::Builder::new().spawn_scoped(scope, || back(window, first)));
            let rest = back(window, rest);
            let first = match beside {
                Some(Ok(beside)) => beside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                _ => back(window, first),
            };
            [first, rest]
        });
        let kept = &mut self.out.keepspan;
        for half in halves {
            let Back { recalled, bytes, changed } = half?;
            kept.recalled = kept.recalled.saturating_add(recalled);
            kept.recalled_bytes = kept.recalled_bytes.saturating_add(bytes);
            kept.changed = kept.changed.saturating_add(changed);
        }
        Ok(())
    }
}

/// What came back.
#[derive(Default)]
struct Back {
    recalled: u64,
    bytes: u64,
    changed: u64,
}

/// Brings spans back and compares each with the hash of what the file says.
fn back(window: &Session<Shared>, spans: &[(SpanId, Option<u64>)]) -> Result<Back, Failure> {
    let mut back = Back::default();
    for (span, said) in spans {
        let recalled = window.recall(*span).wait().map_err(replay)?;
        let bytes = recalled.content().as_bytes();
        // The window's own check is SHA-256 of what it was given, this one is against what the file says.
        if said.is_none_or(|said| said == hash(bytes)) {
            back.recalled = back.recalled.saturating_add(1);
            back.bytes = back.bytes.saturating_add(number(bytes.len()));
        } else {
            back.changed = back.changed.saturating_add(1);
        }
    }
    Ok(back)
}

/// Makes two points one: the larger request, and the first marks of both.
fn join(moment: &mut Moment, utilization: u64, marks: Vec<Mark>) {
    moment.utilization = moment.utilization.max(utilization);
    moment.marks.extend(marks);
    moment.marks.truncate(MARKS);
}

/// Whether a reference this far back is among the farthest.
fn lists(late: &Late, distance: u64) -> bool {
    late.worst.len() < LISTED || late.worst.last().is_none_or(|last| distance > last.distance)
}

/// Keeps a reference among the farthest.
fn list(late: &mut Late, reference: Reference) {
    let at = late.worst.partition_point(|other| other.distance >= reference.distance);
    late.worst.insert(at, reference);
    late.worst.truncate(LISTED);
}

/// What the window or the store said no to.
fn replay(error: impl std::fmt::Display) -> Failure {
    Failure::Replay(error.to_string())
}
