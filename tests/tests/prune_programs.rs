//! Random programs of pushes, passes, fallbacks and their undoing, over a store that fails now and then, by processes that
//! stop anywhere: after every move nothing is lost, nothing that must stay has left, and the books agree; and a window that
//! is resumed is the one that was dropped, but for what was pushed and not committed.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::pending,
    io,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
};

use keepspan::{
    CommitError, Digest, Episode, EpisodeId, Escalation, Fallback, FellBack, Fidelity, Finish, FixedTemplate,
    LargestToolOutput, Limits, Loss, ModelAnswer, Mutation, NewSpan, OldestFirst, OneByteAToken, Outcome, Pass,
    PruneEvent, RecallError, Recovered, Report, ResumeError, SelectionError, Shown, SpanId, SupersededReads, Window,
    store::{AsyncStore, Batch, Store, StoreError},
    tool::Answer,
};
use keepspan_tests::{Agent, Fault, Faulty, Seen, now, unsaved};
use proptest::prelude::*;

type Windowed = Window<Agent, Flaky>;
type Checked = Result<(), TestCaseError>;

const LANES: [&str; 8] = ["work", "work", "schema", "failed", "target", "decisions", "limits", "rules"];

/// A store whose commits can also hang, before or after they happened, until whoever waits gives up; or find no space.
#[derive(Clone, Debug, Default)]
struct Flaky {
    inner: Arc<Faulty>,
    /// Commits left before one goes wrong, and how.
    countdown: Arc<AtomicU8>,
    kind: Arc<AtomicU8>,
}

const HANGS_BEFORE: u8 = 9;
const HANGS_AFTER: u8 = 10;
const FULL: u8 = 11;
const LOST: u8 = 12;

impl Flaky {
    fn arm(&self, (nth, kind): (u8, u8)) {
        let faults = [Fault::Fails, Fault::BitFlip, Fault::ShortRead];
        match kind {
            0..9 => self.inner.arm(u64::from(nth), faults[usize::from(kind) % 3]),
            kind => {
                self.kind.store(kind.min(LOST), Ordering::SeqCst);
                self.countdown.store(nth, Ordering::SeqCst);
            }
        }
    }

    /// Every fault is over.
    fn calm(&self) {
        self.inner.arm(0, Fault::Fails);
        self.countdown.store(0, Ordering::SeqCst);
    }

    fn records(&self) -> Result<u64, TestCaseError> {
        Store::length(&self.inner, &EpisodeId::new("e")).map_err(failed)
    }
}

impl AsyncStore for Flaky {
    async fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        let left = self.countdown.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        match if left == Ok(1) { self.kind.load(Ordering::SeqCst) } else { 0 } {
            HANGS_BEFORE => pending().await,
            HANGS_AFTER => {
                Store::commit(&self.inner, batch)?;
                pending().await
            }
            LOST => Store::commit(&self.inner, batch).and(Err(StoreError::Unacknowledged)),
            FULL => Err(StoreError::Io { path: "disk".into(), source: io::ErrorKind::StorageFull.into() }),
            _ => Store::commit(&self.inner, batch),
        }
    }

    async fn get_many(&self, digests: &[Digest]) -> Result<Vec<Vec<u8>>, StoreError> {
        Store::get_many(&self.inner, digests)
    }

    async fn read(&self, episode: &EpisodeId, from: u64, most: u64) -> Result<Vec<Vec<u8>>, StoreError> {
        Store::read(&self.inner, episode, from, most)
    }

    async fn length(&self, episode: &EpisodeId) -> Result<u64, StoreError> {
        Store::length(&self.inner, episode)
    }

    async fn holders(&self, signatures: &[Digest]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        Store::holders(&self.inner, signatures)
    }
}

fn failed(error: impl std::fmt::Display) -> TestCaseError {
    TestCaseError::fail(error.to_string())
}

/// One move of a random program; numbers choose among what there is.
#[derive(Clone, Debug)]
enum Move {
    Push(usize, u16),
    Tool(u16, u8),
    /// A turn with so many calls, of which some are answered at once, the last one as an error.
    Exchange(u8, u8, u16),
    Settle(u16),
    Pass(Decision),
    FallBack(u8),
    Undo(u8),
    Restore(u8),
    Reground(u8),
    Escalate,
    Policy(u8),
    Discard(u8),
    Redact(Option<u8>),
    /// The store is asked what became of a commit without an answer.
    Recover,
    /// The process stops and another goes on: after it asked the store and committed everything, or at once.
    Stop(bool, u8),
}

/// What a model answers: mostly what is offered, sometimes anything.
#[derive(Clone, Debug)]
struct Decision {
    evict: Vec<u8>,
    summarize: Vec<u8>,
    summary: u16,
    anything: Option<u8>,
    lanes: bool,
    rationale: u8,
    /// Which commit of its pass gets no answer.
    lost: Option<u8>,
}

fn decisions() -> impl Strategy<Value = Decision> {
    let some = || prop::collection::vec(any::<u8>(), 0..5);
    let parts =
        (some(), some(), 0..400_u16, prop::option::weighted(0.2, 0..60_u8), prop::bool::weighted(0.1), 0..60_u8);
    (parts, prop::option::weighted(0.25, 1..3_u8)).prop_map(
        |((evict, summarize, summary, anything, lanes, rationale), lost)| Decision {
            evict,
            summarize,
            summary,
            anything,
            lanes,
            rationale,
            lost,
        },
    )
}

/// A move, and the store's fault in it: at which call, and which.
fn programs() -> impl Strategy<Value = Vec<(Move, Option<(u8, u8)>)>> {
    let one = prop_oneof![
        6 => (0..LANES.len(), 1..900_u16).prop_map(|(lane, size)| Move::Push(lane, size)),
        3 => (1..900_u16, 0..4_u8).prop_map(|(size, subject)| Move::Tool(size, subject)),
        3 => (1..4_u8, 0..4_u8, 1..500_u16).prop_map(|(calls, answered, size)| Move::Exchange(calls, answered, size)),
        2 => (1..500_u16).prop_map(Move::Settle),
        9 => decisions().prop_map(Move::Pass),
        3 => (0..4_u8).prop_map(Move::FallBack),
        2 => any::<u8>().prop_map(Move::Undo),
        1 => any::<u8>().prop_map(Move::Restore),
        1 => any::<u8>().prop_map(Move::Reground),
        1 => Just(Move::Escalate),
        1 => (0..3_u8).prop_map(Move::Policy),
        1 => any::<u8>().prop_map(Move::Discard),
        1 => prop::option::weighted(0.2, any::<u8>()).prop_map(Move::Redact),
        2 => Just(Move::Recover),
        1 => (any::<bool>(), 0..3_u8).prop_map(|(settled, policy)| Move::Stop(settled, policy)),
    ];
    prop::collection::vec((one, prop::option::weighted(0.15, (1..4_u8, 0..14_u8))), 1..120)
}

/// What the program knows of the window, kept beside it.
#[derive(Default)]
struct Model {
    /// Every span that was pushed, with its lane and text; rationales among them.
    spans: BTreeMap<SpanId, (&'static str, String)>,
    /// Calls with the turns that made them, and with their results.
    asked: BTreeMap<String, SpanId>,
    answered: BTreeMap<String, SpanId>,
    calls: u64,
    texts: u64,
    /// Spans that were to be removed for good, whether or not the store knows.
    discarded: BTreeSet<SpanId>,
    reports: Vec<Report>,
    summaries: Vec<SpanId>,
    /// How the store fails in this move.
    fault: Option<(u8, u8)>,
    /// How often things happened, to see that they do.
    seen: BTreeMap<&'static str, u32>,
}

impl Model {
    fn see(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    /// No two texts are the same, those that a stop took along among them.
    fn text(&mut self, size: u16) -> String {
        self.texts += 1;
        format!("{} {}", self.texts, "t".repeat(usize::from(size)))
    }

    fn take(&mut self, window: &mut Windowed, lane: &'static str, span: NewSpan, text: String) -> Option<SpanId> {
        let lanes = window.lanes();
        let pushed = match lane {
            "schema" => lanes.schema.push(span),
            "failed" => lanes.failed.push(span),
            "target" => lanes.target.push(span),
            "decisions" => lanes.decisions.push(span),
            "limits" => lanes.limits.push(span),
            "rules" => lanes.rules.push(span),
            _ => lanes.work.push(span),
        };
        let span = pushed.ok()?;
        self.spans.insert(span, (lane, text));
        Some(span)
    }

    /// Calls without a result, with their turns.
    fn open(&self) -> BTreeSet<(SpanId, &str)> {
        let open = self.asked.iter().filter(|(call, _)| !self.answered.contains_key(*call));
        open.map(|(call, turn)| (*turn, call.as_str())).collect()
    }

    /// The spans of exchanges that lack a result.
    fn pending(&self) -> BTreeSet<SpanId> {
        let turns: BTreeSet<_> = self.open().into_iter().map(|(turn, _)| turn).collect();
        let results = self.asked.iter().filter(|(_, turn)| turns.contains(turn));
        results.filter_map(|(call, _)| self.answered.get(call)).chain(&turns).copied().collect()
    }

    fn answer(&mut self, window: &mut Windowed, lane: &'static str, size: u16) {
        let Some(call) = self.open().last().map(|(_, call)| (*call).to_owned()) else { return };
        let text = self.text(size);
        let result = NewSpan::tool("run", text.as_str()).answers(call.as_str());
        let span = self.take(window, lane, result, text);
        self.answered.extend(span.map(|span| (call, span)));
    }

    /// A number is another now, as a recovered commit had taken it; several at once.
    fn renumber(&mut self, moved: &[(SpanId, SpanId)]) {
        let new = |span: SpanId| moved.iter().find(|(old, _)| *old == span).map_or(span, |(_, new)| *new);
        self.spans = std::mem::take(&mut self.spans).into_iter().map(|(span, text)| (new(span), text)).collect();
        self.discarded = self.discarded.iter().map(|span| new(*span)).collect();
        self.asked.values_mut().chain(self.answered.values_mut()).for_each(|span| *span = new(*span));
    }

    /// Spans that a stop took along.
    fn forget(&mut self, lost: &BTreeSet<SpanId>) {
        self.spans.retain(|span, _| !lost.contains(span));
        self.discarded.retain(|span| !lost.contains(span));
        self.answered.retain(|_, span| !lost.contains(span));
        self.asked.retain(|_, span| !lost.contains(span));
        let Self { asked, answered, .. } = self;
        answered.retain(|call, _| asked.contains_key(call));
    }

    fn keep(&mut self, report: Report, rationale: Option<&str>) {
        self.summaries.extend(report.summaries());
        if let (Some(span), Some(text)) = (report.rationale(), rationale) {
            self.spans.insert(span, ("decisions", text.to_owned()));
        }
        self.reports.push(report);
    }
}

fn at<T>(list: &[T], number: u8) -> Option<&T> {
    list.get(usize::from(number).checked_rem(list.len())?)
}

fn step(window: &mut Windowed, store: &Flaky, model: &mut Model, one: Move) -> Checked {
    match one {
        Move::Push(lane, size) => {
            let text = model.text(size);
            model.take(window, LANES[lane], text.as_str().into(), text.clone());
        }
        Move::Tool(size, subject) => {
            let text = model.text(size);
            let span = NewSpan::tool("read", text.as_str()).reads(subject.to_string());
            model.take(window, "work", span, text);
        }
        Move::Exchange(calls, answered, size) => {
            let ids: Vec<_> = (0..calls).map(|n| format!("call_{}", model.calls + u64::from(n))).collect();
            model.calls += u64::from(calls);
            let text = model.text(size);
            let turn = NewSpan::model(text.as_str()).calls(ids.clone());
            let Some(span) = model.take(window, "work", turn, text) else { return Ok(()) };
            model.asked.extend(ids.into_iter().map(|call| (call, span)));
            for n in 0..answered.min(calls) {
                model.answer(window, if n == 2 { "failed" } else { "work" }, size);
            }
        }
        Move::Settle(size) => model.answer(window, "work", size),
        Move::Pass(decision) => pass(window, store, model, &decision)?,
        Move::FallBack(which) => match which {
            0 => fall_back(window, model, OldestFirst)?,
            1 => fall_back(window, model, LargestToolOutput)?,
            2 => fall_back(window, model, SupersededReads)?,
            _ => fall_back(window, model, FixedTemplate)?,
        },
        Move::Undo(which) => {
            let Some(report) = at(&model.reports, which).cloned() else { return Ok(()) };
            if let Some(Ok(back)) = now(window.undo(&report)) {
                prop_assert!(report.tombstones().iter().all(|tombstone| back.contains(&tombstone.span())));
                model.see("undone");
            }
        }
        Move::Restore(which) => {
            let lanes = window.lanes();
            if let Some(span) = at(&lanes.work.evicted(), which) {
                let _ = now(lanes.work.restore(*span));
            }
            if let Some(span) = at(&lanes.schema.evicted(), which) {
                let _ = now(lanes.schema.restore(*span));
            }
        }
        Move::Reground(which) => {
            let lanes = window.lanes();
            let summaries = [lanes.recap.resident(), lanes.recap.evicted()].concat();
            if let Some(summary) = at(&summaries, which)
                && let Some(Ok(_)) = now(lanes.recap.reground(*summary))
            {
                model.see("regrounded");
            }
        }
        Move::Escalate => {
            let Some(Ok(lanes)) = now(window.lanes().externalize()) else { return Ok(()) };
            let (Ok(text), Ok(why)) = (ModelAnswer::new(Finish::Stop, "all").try_into(), Escalation::because("asked"))
            else {
                return Ok(());
            };
            if let Some(Ok(summary)) = now(lanes.recap.escalate(lanes.recap.resident(), text, why)) {
                model.summaries.push(summary);
                model.see("escalated");
            }
        }
        Move::Policy(version) => drop(now(window.change_policy(format!("p{version}").as_str()))),
        Move::Discard(which) => {
            let lanes = window.lanes();
            let Some(span) = at(&lanes.work.resident(), which).copied() else { return Ok(()) };
            let mutation = Mutation::new("a key", "ask").map_err(failed)?;
            let first = model.discarded.insert(span);
            match now(lanes.work.discard(span, mutation)) {
                Some(Ok(())) => model.see("discarded"),
                Some(Err(error)) if first && !error.to_string().contains("did not say") => {
                    _ = model.discarded.remove(&span)
                }
                _ => {}
            }
        }
        Move::Redact(which) => {
            let lanes = window.lanes();
            let spans = [lanes.work.resident(), lanes.work.evicted()].concat();
            let Some(span) = which.and_then(|which| at(&spans, which)).copied() else { return Ok(()) };
            let mutation = Mutation::new("a key", "ask").map_err(failed)?;
            let first = model.discarded.insert(span);
            match now(lanes.work.redact(span, mutation)) {
                Some(Ok(_)) => model.see("redacted"),
                Some(Err(error)) if first && !error.to_string().contains("did not say") => {
                    _ = model.discarded.remove(&span)
                }
                _ => {}
            }
        }
        Move::Recover => recover(window, store, model)?,
        Move::Stop(settled, policy) => stop(window, store, model, settled, policy)?,
    }
    Ok(())
}

/// Whatever became of the last commit, nothing that was pushed is lost by asking.
fn recover(window: &mut Windowed, store: &Flaky, model: &mut Model) -> Checked {
    store.calm();
    let (before, pushed) = (Seen::of(window).without(&["advice"]), unsaved(window));
    model.fault.take().into_iter().for_each(|fault| store.arm(fault));
    let recovered = now(window.recover_async());
    store.calm();
    match recovered {
        Some(Ok(Recovered::NotWritten)) => {
            prop_assert_eq!(Seen::of(window).without(&["advice"]).difference(&before), None);
        }
        Some(Ok(Recovered::Written { moved })) => {
            model.see(if moved.is_empty() { "recovered" } else { "renumbered" });
            model.renumber(&moved);
            let new = |span| moved.iter().find(|(old, _)| *old == span).map_or(span, |(_, new)| *new);
            for unsaved in &pushed {
                let Some(recalled) = now(window.recall(new(unsaved.span))) else { continue };
                let gone = matches!(recalled, Err(RecallError::Discarded { .. }));
                prop_assert!(gone || recalled.is_ok_and(|recalled| *recalled.content() == unsaved.content));
            }
        }
        Some(Ok(other)) => prop_assert!(false, "{other:?}"),
        Some(Err(ResumeError::Commit(CommitError::Superseded { .. }))) => prop_assert!(false, "nobody else writes"),
        Some(Err(_)) => {
            prop_assert_eq!(Seen::of(window).without(&["advice"]).difference(&before), None);
            model.see("not recovered");
        }
        None => prop_assert!(false, "only commits hang"),
    }
    Ok(())
}

fn episode(policy: keepspan::PolicyVersion, keep: u64) -> Episode {
    let limits = Limits::of(6_000).fixed(FIXED).trigger(4_500).index(800).rationale(60).margin(100).keep(keep);
    Episode::new("e", policy).budget(limits)
}

/// Another process goes on, and this one is told.
fn stop(window: &mut Windowed, store: &Flaky, model: &mut Model, settled: bool, policy: u8) -> Checked {
    store.calm();
    if settled {
        model.fault = None;
        recover(window, store, model)?;
        let text = model.text(1);
        model.take(window, "work", text.as_str().into(), text.clone());
        drop(now(window.lanes().externalize()).ok_or_else(|| failed("hangs"))?.map_err(failed)?);
        prop_assert_eq!(unsaved(window).len(), 0);
    }
    let (before, pushed, records) = (Seen::of(window), unsaved(window), store.records()?);
    let keep = window.budget().map_or(0, |budget| budget.keep());
    let policy = if policy == 0 { format!("p{}", model.calls % 3).as_str().into() } else { window.policy() };
    let changes = policy != window.policy();
    let resumed = now(Windowed::resume_async(store.clone(), episode(policy, keep), OneByteAToken));
    let resumed = resumed.ok_or_else(|| failed("hangs"))?.map_err(failed)?;
    let mut old = std::mem::replace(window, resumed);
    if settled && !changes {
        // That a store once gave other bytes is not on record: whether it still does is asked of it again.
        let unverified = matches!(old.fidelity(), Fidelity::Lossy { cause: Loss::Unverified, .. });
        // Nor is what a line of the list took when it was last asked for, by which advice judges how many there is room for.
        let but: &[&str] = if unverified { &["fidelity", "advice"] } else { &["advice"] };
        prop_assert_eq!(before.without(but).difference(&Seen::of(window).without(but)), None);
        model.see("the same");
    }
    let (mut lost, mut taken) = (BTreeSet::new(), false);
    for unsaved in pushed {
        match now(window.recall(unsaved.span)).ok_or_else(|| failed("hangs"))? {
            Ok(recalled) if *recalled.content() == unsaved.content => {}
            // Its number went to a summary of the commit whose answer was lost.
            Ok(recalled) => {
                prop_assert!(window.derivation(recalled.span()).is_some());
                taken = true;
                lost.insert(unsaved.span);
            }
            Err(RecallError::Discarded { span, .. }) => prop_assert!(model.discarded.contains(&span)),
            Err(RecallError::Selection(SelectionError::Unknown { .. } | SelectionError::Unrecorded { .. })) => {
                lost.insert(unsaved.span);
            }
            Err(error) => return Err(failed(error)),
        }
    }
    model.forget(&lost);
    model.reports.clear();
    // The one that was superseded keeps what it has.
    let span = old.lanes().work.push("too late").map_err(failed)?;
    match now(old.lanes().externalize()).ok_or_else(|| failed("hangs"))? {
        Err(CommitError::Superseded { expected, found, .. }) => {
            prop_assert_eq!((expected, found, taken), (records, records, false));
            model.see("superseded");
            let left = |message: &keepspan::Message| !matches!(message.shown(), Shown::Span(of) if of == span || lost.contains(&of));
            let [old, new] = [&old, &*window].map(|window| {
                let messages = window.render().into_iter().filter(left);
                messages.map(|message| format!("{message:?}")).collect::<Vec<_>>()
            });
            prop_assert_eq!(old, new);
        }
        Err(CommitError::Interrupted { .. }) => model.see("stopped in a commit"),
        other => return Err(failed(format!("{other:?}"))),
    }
    prop_assert!(unsaved(&old).iter().any(|unsaved| unsaved.span == span));
    prop_assert!(lost.iter().all(|lost| unsaved(&old).iter().any(|unsaved| unsaved.span == *lost)));
    Ok(())
}

fn answer(pass: &Pass<'_, Agent, Flaky>, decision: &Decision) -> Answer {
    let Decision { evict, summarize, summary, anything, lanes, rationale, lost: _ } = decision;
    if *lanes {
        return Answer::prune(["Work"]).with_rationale("x".repeat(usize::from(*rationale)));
    }
    let offered: Vec<_> = pass.index().offers().iter().map(|offer| offer.span().to_string()).collect();
    let mut evict: Vec<_> = evict.iter().filter_map(|which| at(&offered, *which).cloned()).collect();
    evict.sort();
    evict.dedup();
    let mut sources: Vec<_> = summarize.iter().filter_map(|which| at(&offered, *which).cloned()).collect();
    sources.sort();
    sources.dedup();
    sources.retain(|name| !evict.contains(name));
    evict.extend(anything.map(|number| format!("s{number}")));
    let answer = Answer::prune(evict).with_rationale("x".repeat(usize::from(*rationale)));
    if sources.is_empty() { answer } else { answer.summarize(sources, "y".repeat(usize::from(*summary))) }
}

fn pass(window: &mut Windowed, store: &Flaky, model: &mut Model, decision: &Decision) -> Checked {
    let before = window.utilization();
    let Some(Ok(lanes)) = now(window.lanes().externalize()) else { return Ok(()) };
    let Ok(pass) = lanes.admit() else {
        model.see("refused");
        return Ok(());
    };
    for offer in pass.index().offers() {
        let lane = model.spans.get(&offer.span()).map_or("recap", |(lane, _)| lane);
        prop_assert!(["work", "recap"].contains(&lane), "{} is offered", offer.span());
    }
    let answer = answer(&pass, decision);
    let Ok(proposal) = pass.parse(&answer) else {
        model.see("parse refused");
        return Ok(());
    };
    let preview = pass.preview(&proposal).ok();
    decision.lost.into_iter().for_each(|nth| store.arm((nth, LOST)));
    let passed = now(pass.apply(proposal));
    store.calm();
    match passed {
        Some(Ok(Outcome::Pruned(report))) => {
            prop_assert!(window.utilization() < before, "{} after {before}", window.utilization());
            prop_assert_eq!(preview.map(|preview| preview.after), Some(report.pass().after));
            model.keep(report, Some(answer.rationale()));
            model.see("pruned");
            again(window, store, model, &answer)
        }
        Some(Ok(Outcome::Unchanged) | Err(_)) | None => {
            prop_assert_eq!(window.utilization(), before);
            Ok(())
        }
    }
}

/// R24: the same answer once more changes nothing and writes nothing, unless it named whole lanes.
fn again(window: &mut Windowed, store: &Flaky, model: &mut Model, answer: &Answer) -> Checked {
    if answer.calls().iter().any(|call| call.names().iter().any(|name| name == "Work")) {
        return Ok(());
    }
    let lanes = now(window.lanes().externalize()).ok_or_else(|| failed("hangs"))?.map_err(failed)?;
    let length = store.records()?;
    let Ok(pass) = lanes.admit() else { return Ok(()) };
    let proposal = pass.parse(answer).map_err(failed)?;
    let passed = now(pass.apply(proposal)).ok_or_else(|| failed("hangs"))?.map_err(failed)?;
    prop_assert_eq!(passed, Outcome::Unchanged);
    prop_assert_eq!(store.records()?, length);
    model.see("unchanged");
    Ok(())
}

fn fall_back<B: Fallback>(window: &mut Windowed, model: &mut Model, strategy: B) -> Checked {
    let before = window.utilization();
    let Some(Ok(lanes)) = now(window.lanes().externalize()) else { return Ok(()) };
    let Err(refusal) = lanes.admit() else { return Ok(()) };
    match now(refusal.fall_back(strategy)) {
        Some(Ok(FellBack::Freed(report))) => {
            prop_assert!(window.utilization() < before);
            prop_assert_eq!(report.pass().after, window.utilization() + FIXED);
            model.keep(report, None);
            model.see("fell back");
        }
        Some(Ok(_)) => {
            prop_assert_eq!(window.utilization(), before);
            model.see("nothing to do");
        }
        Some(Err(_)) | None => {
            prop_assert_eq!(window.utilization(), before);
            model.see("fallback failed");
        }
    }
    Ok(())
}

/// The spans that what is shown stands for, ascending.
fn stands_for(window: &Windowed) -> Vec<SpanId> {
    fn roots(window: &Windowed, span: SpanId) -> Vec<SpanId> {
        let derivation = window.derivation(span);
        derivation.map_or(vec![span], |from| from.sources().iter().flat_map(|span| roots(window, *span)).collect())
    }
    let ids = |shown: Shown| match shown {
        Shown::Pointer(first, last) => (first.number()..=last.number())
            .filter_map(|number| SpanId::parse(&format!("s{number}")))
            .flat_map(|span| roots(window, span))
            .collect(),
        Shown::Span(span) | Shown::Summary(span) | Shown::Discarded(span) => roots(window, span),
        other => panic!("{other:?}"),
    };
    let mut all: Vec<_> = window.render().iter().flat_map(|message| ids(message.shown())).collect();
    all.sort_unstable();
    all
}

const FIXED: u64 = 100;

fn check(window: &Windowed, model: &Model) -> Checked {
    let render = window.render();
    let rendered: u64 = render.iter().map(|message| u64::from(message.tokens())).sum();
    prop_assert_eq!(window.utilization(), rendered);
    let spans: Vec<_> = model.spans.keys().copied().collect();
    prop_assert_eq!(stands_for(window), spans, "each span is shown once: as text, under a pointer or in a summary");
    // What never leaves is there, word for word.
    let texts: BTreeMap<_, _> =
        render.iter().map(|message| (message.shown(), message.content())).filter_map(by_span).collect();
    let open = window.open_calls();
    prop_assert_eq!(open.iter().map(|open| (open.span, &*open.call)).collect::<BTreeSet<_>>(), model.open());
    let pending = model.pending();
    let kept = model.spans.iter().filter(|(_, (lane, _))| ["rules", "limits"].contains(lane)).map(|(span, _)| *span);
    let gone = |span: &SpanId| render.iter().any(|message| message.shown() == Shown::Discarded(*span));
    for span in kept.chain(pending.into_iter().filter(|span| !(model.discarded.contains(span) && gone(span)))) {
        let text = model.spans.get(&span).map(|(_, text)| text.as_str());
        prop_assert_eq!(texts.get(&span).copied(), text, "{} has left", span);
    }
    for summary in &model.summaries {
        let derivation = window.derivation(*summary).ok_or(TestCaseError::fail("a summary without sources"))?;
        prop_assert!(!derivation.sources().is_empty());
        for source in derivation.sources() {
            let lane = model.spans.get(source).map_or("recap", |(lane, _)| lane);
            prop_assert!(lane == "work" || lane == "recap" && derivation.depth() > 1, "{} of {}", source, lane);
        }
    }
    for (span, (_, text)) in &model.spans {
        match now(window.recall(*span)).ok_or_else(|| failed("hangs"))? {
            Err(RecallError::Discarded { .. } | RecallError::Commit(CommitError::Sealed { .. }))
                if model.discarded.contains(span) => {}
            recalled => {
                let recalled = recalled.map_err(failed)?;
                prop_assert_eq!(recalled.content().as_text(), Some(text.as_str()));
            }
        }
    }
    books(window)
}

fn by_span((shown, content): (Shown, &keepspan::Content)) -> Option<(SpanId, &str)> {
    match shown {
        Shown::Span(span) => Some((span, content.as_text()?)),
        _ => None,
    }
}

/// The sums are those of the events.
fn books(window: &Windowed) -> Checked {
    let accounting = window.accounting();
    let (mut gross, mut net, mut overhead, mut pointers, mut freed) = (0, 0, 0, 0, 0);
    let (mut passes, mut unchanged, mut fallbacks, mut rejected) = (0, 0, 0, 0);
    for event in accounting.events() {
        match event {
            PruneEvent::Passed(pass) => {
                prop_assert!(pass.after < pass.before);
                passes += 1;
                prop_assert_eq!(pass.before + pass.pointers + pass.kept, pass.after + pass.gross);
                gross += pass.gross;
                net += pass.net() + i64::try_from(pass.overhead()).unwrap_or(i64::MAX);
                pointers += pass.pointers;
            }
            PruneEvent::Decided { index, rationale, accepted, .. } => {
                overhead += index + rationale;
                net -= i64::try_from(index + rationale).unwrap_or(i64::MAX);
                rejected += u64::from(!accepted);
            }
            PruneEvent::Unchanged { .. } => unchanged += 1,
            PruneEvent::FellBack { before, after, .. } => {
                prop_assert!(after < before);
                fallbacks += 1;
                freed += before - after;
            }
            _ => {}
        }
    }
    prop_assert_eq!(
        (passes, unchanged, fallbacks, rejected),
        (accounting.passes, accounting.unchanged, accounting.fallbacks, accounting.rejected)
    );
    prop_assert_eq!((gross, net, pointers), (accounting.gross, accounting.net, accounting.pointers));
    prop_assert_eq!((overhead, freed), (accounting.index + accounting.rationale, accounting.fallback_freed));
    Ok(())
}

fn run(program: Vec<(Move, Option<(u8, u8)>)>, keep: u64) -> Result<BTreeMap<&'static str, u32>, TestCaseError> {
    let store = Flaky::default();
    let opened = now(Windowed::open_async(store.clone(), episode("p".into(), keep), OneByteAToken));
    let mut window = opened.ok_or_else(|| failed("hangs"))?.map_err(failed)?;
    let mut model = Model::default();
    for (one, fault) in program {
        model.fault = fault;
        fault.into_iter().for_each(|fault| store.arm(fault));
        step(&mut window, &store, &mut model, one)?;
        store.calm();
        check(&window, &model)?;
    }
    Ok(model.seen)
}

/// Whatever happens. Every kind of outcome happens often enough for that to mean something.
#[test]
fn whatever_is_pushed_pruned_and_undone_nothing_is_lost() {
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: std::env::var("KEEPSPAN_PROGRAMS").ok().and_then(|cases| cases.parse().ok()).unwrap_or(800),
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let seen = std::cell::RefCell::new(BTreeMap::<&'static str, u32>::new());
    let ran = runner.run(&(programs(), 0..600_u64), |(program, keep)| {
        for (what, times) in run(program, keep)? {
            *seen.borrow_mut().entry(what).or_default() += times;
        }
        Ok(())
    });
    if let Err(error) = ran {
        panic!("{error}");
    }
    let seen = seen.into_inner();
    for what in [
        "pruned",
        "unchanged",
        "refused",
        "parse refused",
        "fell back",
        "nothing to do",
        "fallback failed",
        "undone",
        "regrounded",
        "escalated",
        "discarded",
        "redacted",
        "recovered",
        "renumbered",
        "not recovered",
        "the same",
        "superseded",
        "stopped in a commit",
    ] {
        assert!(seen.get(what).is_some_and(|times| *times >= 8), "{what} is too rare to say anything: {seen:?}");
    }
}
