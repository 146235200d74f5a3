//! Random programs of pushes, passes, fallbacks and their undoing, over a store that fails now and then: after every move
//! nothing is lost, nothing that must stay has left, and the books agree.

use std::{collections::BTreeMap, sync::Arc};

use keepspan::{
    Episode, EpisodeId, Escalation, Fallback, FellBack, Finish, FixedTemplate, LargestToolOutput, Limits, ModelAnswer,
    NewSpan, OldestFirst, OneByteAToken, Outcome, Pass, PruneEvent, Report, Shown, SpanId, SupersededReads, Window,
    store::Store as _, tool::Answer,
};
use keepspan_tests::{Agent, Fault, Faulty};
use proptest::prelude::*;

type Windowed = Window<Agent, Arc<Faulty>>;
type Checked = Result<(), TestCaseError>;

const LANES: [&str; 8] = ["work", "work", "schema", "failed", "target", "decisions", "limits", "rules"];

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
}

fn decisions() -> impl Strategy<Value = Decision> {
    let some = || prop::collection::vec(any::<u8>(), 0..5);
    let parts =
        (some(), some(), 0..400_u16, prop::option::weighted(0.2, 0..60_u8), prop::bool::weighted(0.1), 0..60_u8);
    parts.prop_map(|(evict, summarize, summary, anything, lanes, rationale)| Decision {
        evict,
        summarize,
        summary,
        anything,
        lanes,
        rationale,
    })
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
    ];
    prop::collection::vec((one, prop::option::weighted(0.15, (1..4_u8, 0..9_u8))), 1..120)
}

/// What the program knows of the window, kept beside it.
#[derive(Default)]
struct Model {
    /// Every span that was pushed, with its lane and text; rationales among them.
    spans: BTreeMap<SpanId, (&'static str, String)>,
    /// Calls that wait for a result, with the spans of their exchange.
    open: Vec<(String, Vec<SpanId>)>,
    calls: u64,
    reports: Vec<Report>,
    summaries: Vec<SpanId>,
    /// How often things happened, to see that they do.
    seen: BTreeMap<&'static str, u32>,
}

impl Model {
    fn see(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    fn text(&self, size: u16) -> String {
        format!("{} {}", self.spans.len(), "t".repeat(usize::from(size)))
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

    fn answer(&mut self, window: &mut Windowed, lane: &'static str, size: u16) {
        let Some((call, mut members)) = self.open.pop() else { return };
        let text = self.text(size);
        let result = NewSpan::tool("run", text.as_str()).answers(call.as_str());
        let Some(span) = self.take(window, lane, result, text) else {
            self.open.push((call, members));
            return;
        };
        members.push(span);
        for (_, others) in self.open.iter_mut().filter(|(_, others)| others.first() == members.first()) {
            others.push(span);
        }
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

fn step(window: &mut Windowed, store: &Faulty, model: &mut Model, one: Move) -> Checked {
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
            model.open.extend(ids.into_iter().map(|call| (call, vec![span])));
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
            if let Ok(back) = window.undo(&report).wait() {
                prop_assert!(report.tombstones().iter().all(|tombstone| back.contains(&tombstone.span())));
                model.see("undone");
            }
        }
        Move::Restore(which) => {
            let lanes = window.lanes();
            if let Some(span) = at(&lanes.work.evicted(), which) {
                let _ = lanes.work.restore(*span).wait();
            }
            if let Some(span) = at(&lanes.schema.evicted(), which) {
                let _ = lanes.schema.restore(*span).wait();
            }
        }
        Move::Reground(which) => {
            let lanes = window.lanes();
            let summaries = [lanes.recap.resident(), lanes.recap.evicted()].concat();
            if let Some(summary) = at(&summaries, which)
                && lanes.recap.reground(*summary).wait().is_ok()
            {
                model.see("regrounded");
            }
        }
        Move::Escalate => {
            let Ok(lanes) = window.lanes().externalize().wait() else { return Ok(()) };
            let (Ok(text), Ok(why)) = (ModelAnswer::new(Finish::Stop, "all").try_into(), Escalation::because("asked"))
            else {
                return Ok(());
            };
            if let Ok(summary) = lanes.recap.escalate(lanes.recap.resident(), text, why).wait() {
                model.summaries.push(summary);
                model.see("escalated");
            }
        }
        Move::Policy(version) => drop(window.change_policy(format!("p{version}").as_str()).wait()),
    }
    Ok(())
}

fn answer(pass: &Pass<'_, Agent, Arc<Faulty>>, decision: &Decision) -> Answer {
    let Decision { evict, summarize, summary, anything, lanes, rationale } = decision;
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

fn pass(window: &mut Windowed, store: &Faulty, model: &mut Model, decision: &Decision) -> Checked {
    let before = window.utilization();
    let Ok(lanes) = window.lanes().externalize().wait() else { return Ok(()) };
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
    let passed = pass.apply(proposal).wait();
    store.arm(0, Fault::Fails);
    match passed {
        Ok(Outcome::Pruned(report)) => {
            prop_assert!(window.utilization() < before, "{} after {before}", window.utilization());
            prop_assert_eq!(preview.map(|preview| preview.after), Some(report.pass().after));
            model.keep(report, Some(answer.rationale()));
            model.see("pruned");
            again(window, store, model, &answer)
        }
        Ok(Outcome::Unchanged) | Err(_) => {
            prop_assert_eq!(window.utilization(), before);
            Ok(())
        }
    }
}

/// R24: the same answer once more changes nothing and writes nothing, unless it named whole lanes.
fn again(window: &mut Windowed, store: &Faulty, model: &mut Model, answer: &Answer) -> Checked {
    if answer.calls().iter().any(|call| call.names().iter().any(|name| name == "Work")) {
        return Ok(());
    }
    let fail = |error: &dyn std::fmt::Display| TestCaseError::fail(error.to_string());
    let lanes = window.lanes().externalize().wait().map_err(|error| fail(&error))?;
    let length = store.length(&EpisodeId::new("e")).map_err(|error| fail(&error))?;
    let Ok(pass) = lanes.admit() else { return Ok(()) };
    let proposal = pass.parse(answer).map_err(|error| fail(&error))?;
    let passed = pass.apply(proposal).wait().map_err(|error| fail(&error))?;
    prop_assert_eq!(passed, Outcome::Unchanged);
    prop_assert_eq!(store.length(&EpisodeId::new("e")).map_err(|error| fail(&error))?, length);
    model.see("unchanged");
    Ok(())
}

fn fall_back<B: Fallback>(window: &mut Windowed, model: &mut Model, strategy: B) -> Checked {
    let before = window.utilization();
    let Ok(lanes) = window.lanes().externalize().wait() else { return Ok(()) };
    let Err(refusal) = lanes.admit() else { return Ok(()) };
    match refusal.fall_back(strategy).wait() {
        Ok(FellBack::Freed(report)) => {
            prop_assert!(window.utilization() < before);
            prop_assert_eq!(report.pass().after, window.utilization() + FIXED);
            model.keep(report, None);
            model.see("fell back");
        }
        Ok(_) => {
            prop_assert_eq!(window.utilization(), before);
            model.see("nothing to do");
        }
        Err(_) => {
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
        Shown::Span(span) | Shown::Summary(span) => roots(window, span),
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
    let pending = model.open.iter().flat_map(|(_, members)| members).copied();
    let kept = model.spans.iter().filter(|(_, (lane, _))| ["rules", "limits"].contains(lane)).map(|(span, _)| *span);
    for span in kept.chain(pending) {
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
        let recalled = window.recall(*span).wait().map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(recalled.content().as_text(), Some(text.as_str()));
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
    let store = Arc::new(Faulty::default());
    let limits = Limits::of(6_000).fixed(FIXED).trigger(4_500).index(800).rationale(60).margin(100).keep(keep);
    let opened = Window::<Agent, _>::open_with(store.clone(), Episode::new("e", "p").budget(limits), OneByteAToken);
    let mut window = opened.map_err(|error| TestCaseError::fail(error.to_string()))?;
    let mut model = Model::default();
    for (one, fault) in program {
        if let Some((nth, fault)) = fault {
            let faults = [Fault::Fails, Fault::BitFlip, Fault::ShortRead];
            let fault = if fault == 8 { Fault::Unacknowledged } else { faults[usize::from(fault) % 3] };
            store.arm(u64::from(nth), fault);
        }
        step(&mut window, &store, &mut model, one)?;
        store.arm(0, Fault::Fails);
        check(&window, &model)?;
    }
    Ok(model.seen)
}

/// Whatever happens. Every kind of outcome happens often enough for that to mean something.
#[test]
fn whatever_is_pushed_pruned_and_undone_nothing_is_lost() {
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 800,
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
    ] {
        assert!(seen.get(what).is_some_and(|times| *times >= 20), "{what} is too rare to say anything: {seen:?}");
    }
}
