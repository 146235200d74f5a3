//! A pointer that neighbours share: it names each protected span by its id and lane (rule R8), takes what it says (rule R25)
//! and never more than a pointer each would.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use keepspan::{
    Authority, CounterError, Episode, EpisodeId, FellBack, Finish, Limits, Message, ModelAnswer, Mutation, NewSpan,
    O200k, OldestFirst, OneByteAToken, Permission, Report, Shown, SpanId, TokenCount, TokenCounter, Window,
    audit::History, store::MemoryStore, tool::Answer,
};
use keepspan_tests::{Agent, FourBytes, Seen, acts::Write, memory};
use proptest::prelude::*;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;
type Windowed = Window<Agent, Arc<MemoryStore>>;

/// The most that a pointer names.
const MOST_NAMED: usize = 32;

const LANES: [&str; 5] = ["schema", "target", "failed", "work", "decisions"];
const PROTECTED: [&str; 3] = ["schema", "target", "failed"];

fn push(window: &mut Windowed, lane: &str, span: impl Into<NewSpan>) -> Outcome<SpanId> {
    let lanes = window.lanes();
    Ok(match lane {
        "schema" => lanes.schema.push(span),
        "target" => lanes.target.push(span),
        "failed" => lanes.failed.push(span),
        "decisions" => lanes.decisions.push(span),
        _ => lanes.work.push(span),
    }?)
}

fn evict(window: &mut Windowed, lane: &str, ids: &[SpanId]) -> Outcome {
    let lanes = window.lanes().externalize().wait()?;
    match lane {
        "schema" => lanes.schema.evict(ids).wait()?,
        "target" => lanes.target.evict(ids).wait()?,
        "failed" => lanes.failed.evict(ids).wait()?,
        _ => lanes.work.evict(ids).wait()?,
    };
    Ok(())
}

fn restore(window: &mut Windowed, lane: &str, id: SpanId) -> Outcome {
    let lanes = window.lanes();
    match lane {
        "schema" => lanes.schema.restore(id).wait()?,
        "target" => lanes.target.restore(id).wait()?,
        "failed" => lanes.failed.restore(id).wait()?,
        "decisions" => lanes.decisions.restore(id).wait()?,
        _ => lanes.work.restore(id).wait()?,
    };
    Ok(())
}

fn open(counter: impl TokenCounter + 'static) -> Outcome<Windowed> {
    Ok(Window::open_with(memory(), Episode::new("e", "p").trust_estimates(), counter)?)
}

/// Spans of these lanes, one after another.
fn filled(window: &mut Windowed, lanes: &[&str]) -> Outcome<Vec<SpanId>> {
    let text = |at: usize| format!("{at} {}", "x".repeat(200));
    lanes.iter().enumerate().map(|(at, lane)| push(window, lane, NewSpan::tool("read", text(at)))).collect()
}

fn is_pointer(message: &Message) -> bool {
    matches!(message.shown(), Shown::Pointer(..))
}

/// The lines of pointers.
fn pointers(window: &Windowed) -> Vec<String> {
    let pointers = window.render().into_iter().filter(is_pointer);
    pointers.filter_map(|message| message.content().as_text().map(str::to_owned)).collect()
}

/// What a line names, each id with its lane: a pointer to one span, or that of neighbours.
fn named(line: &str) -> Vec<(SpanId, String)> {
    let line = line.trim_matches(['[', ']']);
    let id = |word: &str| SpanId::parse(word.trim_end_matches(':'));
    if !line.contains("; recall any of them by id") {
        let mut words = line.split([' ', ':']);
        return words.next().and_then(id).zip(words.next().map(str::to_owned)).into_iter().collect();
    }
    let Some((_, names)) = line.trim_end_matches("; recall any of them by id").split_once("store; ") else {
        return Vec::new();
    };
    let of_lane = |names: &str| {
        let mut words = names.split(' ');
        let lane = words.next().unwrap_or_default().to_owned();
        words.filter_map(id).map(|id| (id, lane.clone())).collect::<Vec<_>>()
    };
    names.split(", ").flat_map(of_lane).collect()
}

/// The evicted spans of each protected lane.
fn evicted(window: &mut Windowed) -> BTreeMap<SpanId, String> {
    let lanes = window.lanes();
    let all =
        [("schema", lanes.schema.evicted()), ("target", lanes.target.evicted()), ("failed", lanes.failed.evicted())];
    all.into_iter().flat_map(|(lane, ids)| ids.into_iter().map(move |id| (id, lane.to_owned()))).collect()
}

/// Every evicted protected span is named once, every line takes what it says and no more than lines apart.
fn check(window: &mut Windowed, counter: &dyn TokenCounter) -> Outcome {
    let count = |text: &str| counter.text(text).map(|count| u64::from(count.tokens()));
    let wanted = evicted(window);
    let mut lines: BTreeMap<SpanId, u64> = BTreeMap::new();
    for tombstone in window.tombstones()? {
        lines.insert(tombstone.span(), count(tombstone.pointer().as_str())?);
    }
    let (mut found, mut sum) = (Vec::new(), 0);
    for message in window.render() {
        sum += u64::from(message.tokens());
        let Shown::Pointer(first, last) = message.shown() else { continue };
        let text = message.content().as_text().unwrap_or_default().to_owned();
        assert_eq!(u64::from(message.tokens()), count(&text)?, "{}", text);
        let apart: u64 = lines.range(first..=last).map(|(_, tokens)| tokens).sum();
        assert!(u64::from(message.tokens()) <= apart, "{} takes more than {}", text, apart);
        let protected: Vec<_> =
            named(&text).into_iter().filter(|(_, lane)| PROTECTED.contains(&lane.as_str())).collect();
        assert!(protected.len() <= MOST_NAMED, "{}", text);
        assert!(protected.iter().all(|(id, _)| (first..=last).contains(id)), "{}", text);
        found.extend(protected);
    }
    assert_eq!(window.utilization(), sum);
    found.sort();
    assert_eq!(found, wanted.into_iter().collect::<Vec<_>>(), "each is named once, with its lane");
    Ok(())
}

/// One move of a random program; what it cannot do it leaves.
#[derive(Clone, Debug)]
enum Move {
    /// So many neighbours.
    Push(usize, u8),
    /// An exchange over two lanes.
    Call(usize),
    Evict(Range<u8>),
    Restore(Range<u8>),
    Redact(u8),
    Summarize(Range<u8>),
    /// Everything that may leave, rationales too.
    FallBack,
    /// The first of what is offered: so many to pointers, so many to a summary.
    Pass(usize, usize),
    /// Of the latest pass or fallback that stands.
    Undo,
    /// What an action needs.
    BringBack,
    Stop,
}

/// What a program keeps beside its window.
#[derive(Default)]
struct Known {
    reports: Vec<Report>,
    /// What was shown before each turn of the model.
    turns: Vec<Vec<String>>,
    /// Whether something was removed for good, from what was shown then as well.
    lossy: bool,
}

fn shown(messages: &[Message]) -> Vec<String> {
    messages.iter().map(|message| format!("{:?} {:?}", message.shown(), message.content())).collect()
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let some = || (0..120_u8, 1..50_u8).prop_map(|(first, spans)| first..first + spans);
    let one = prop_oneof![
        5 => (0..LANES.len(), 1..12_u8).prop_map(|(lane, spans)| Move::Push(lane, spans)),
        2 => (0..LANES.len() - 1).prop_map(Move::Call),
        6 => some().prop_map(Move::Evict),
        3 => (0..120_u8, 1..4_u8).prop_map(|(first, spans)| Move::Restore(first..first + spans)),
        1 => (0..120_u8).prop_map(Move::Redact),
        1 => (0..120_u8, 1..4_u8).prop_map(|(first, spans)| Move::Summarize(first..first + spans)),
        1 => Just(Move::FallBack),
        3 => (1..6_usize, 0..4_usize).prop_map(|(evict, summarize)| Move::Pass(evict, summarize)),
        1 => Just(Move::Undo),
        1 => Just(Move::BringBack),
        1 => Just(Move::Stop),
    ];
    prop::collection::vec(one, 1..40)
}

fn ids(range: Range<u8>) -> impl Iterator<Item = SpanId> {
    range.filter_map(|number| SpanId::parse(&format!("s{}", u64::from(number) + 1)))
}

/// Evicts what is resident of these, lane by lane, and summaries.
fn evict_all(window: &mut Windowed, ids: &[SpanId]) -> Outcome {
    for lane in &LANES[..4] {
        let lanes = window.lanes();
        let resident = match *lane {
            "schema" => lanes.schema.resident(),
            "target" => lanes.target.resident(),
            "failed" => lanes.failed.resident(),
            _ => lanes.work.resident(),
        };
        let ids: Vec<_> = resident.into_iter().filter(|id| ids.contains(id)).collect();
        if !ids.is_empty() {
            evict(window, lane, &ids)?;
        }
    }
    let lanes = window.lanes().externalize().wait()?;
    let summaries = lanes.recap.resident();
    if !summaries.is_empty() {
        lanes.recap.evict(summaries).wait()?;
    }
    Ok(())
}

fn step(
    window: &mut Windowed,
    one: Move,
    at: usize,
    known: &mut Known,
    resumed: impl Fn() -> Outcome<Windowed>,
) -> Outcome {
    let text = |n: u8| format!("{at} {n} {}", "text ".repeat(at * 7 % 40 * (1 + usize::from(n % 3))));
    match one {
        Move::Push(lane, spans) => {
            for n in 0..spans {
                push(window, LANES[lane], NewSpan::tool("read_file", text(n)))?;
            }
        }
        Move::Call(lane) => {
            known.turns.push(shown(&window.render()));
            push(window, "work", NewSpan::model(text(0)).calls([format!("c{at}")]))?;
            push(window, LANES[lane], NewSpan::tool("read_file", text(1)).answers(format!("c{at}")))?;
        }
        Move::Evict(range) => evict_all(window, &ids(range).collect::<Vec<_>>())?,
        Move::Restore(range) => {
            for id in ids(range) {
                for lane in LANES {
                    // One of another lane, or in the window.
                    let _ = restore(window, lane, id);
                }
            }
        }
        Move::Redact(number) => {
            let because = Mutation::new("a key", "rotate it")?;
            known.lossy = true;
            drop(window.lanes().externalize().wait()?);
            let _ = window
                .redact_protected(ids(number..number + 1).collect::<Vec<_>>(), because, Authority::of("me")?)
                .wait();
        }
        Move::Summarize(range) => {
            let text = ModelAnswer::new(Finish::Stop, "short").try_into()?;
            let lanes = window.lanes().externalize().wait()?;
            let _ = lanes.work.summarize(ids(range).collect::<Vec<_>>(), text, &lanes.recap).wait();
        }
        Move::FallBack => {
            if let Some(refusal) = window.lanes().externalize().wait()?.admit().err()
                && let Ok(FellBack::Freed(report)) = refusal.fall_back(OldestFirst).wait()
            {
                assert_eq!(report.pass().after, window.utilization());
                known.reports.push(report);
            }
        }
        Move::Pass(evict, summarize) => {
            let Ok(pass) = window.lanes().externalize().wait()?.admit() else { return Ok(()) };
            let mut offered = pass.index().offers().iter().map(|offer| offer.span().to_string());
            let answer = Answer::prune(offered.by_ref().take(evict));
            let answer = if summarize > 0 { answer.summarize(offered.take(summarize), "short") } else { answer };
            let Ok(proposal) = pass.parse(&answer) else { return Ok(()) };
            let preview = pass.preview(&proposal)?;
            if let keepspan::Outcome::Pruned(report) = pass.apply(proposal).wait()? {
                assert_eq!((preview.after, report.pass().after), (window.utilization(), window.utilization()));
                known.reports.push(report);
            }
        }
        Move::Undo => {
            if let Some(report) = known.reports.pop() {
                // Something of it came back already.
                let _ = window.undo(&report).wait();
            }
        }
        Move::BringBack => {
            drop(window.lanes().externalize().wait()?);
            let write = Write::to("a");
            if let Permission::Denied(denied) = window.permit(&write)? {
                // Nothing to bring back.
                let _ = denied.bring_back().wait();
            }
        }
        Move::Stop => {
            drop(window.lanes().externalize().wait()?);
            // A refusal that nothing was committed after is not on record.
            let seen = |window: &mut _| Seen::of(window).without(&["accounting", "advice", "prices"]);
            let before = seen(window);
            *window = resumed()?;
            assert_eq!(before.difference(&seen(window)), None);
        }
    }
    Ok(())
}

/// Runs a program on a window whose limit makes a fallback take protected spans as well, or on one with room for passes.
fn run(program: Vec<Move>, counter: impl TokenCounter + Clone + 'static, wide: bool) -> Outcome {
    let store = memory();
    let episode = || {
        let narrow = Limits::of(4_000).trigger(300).index(1).rationale(1).margin(1);
        let limits = if wide { Limits::of(60_000).trigger(1_000).index(800).rationale(60) } else { narrow };
        Episode::new("e", "p").budget(limits).trust_estimates()
    };
    let mut known = Known::default();
    let mut window = Window::open_with(store.clone(), episode(), counter.clone())?;
    for (at, one) in program.into_iter().chain([Move::Stop]).enumerate() {
        step(&mut window, one, at, &mut known, || Ok(Window::resume_with(store.clone(), episode(), counter.clone())?))?;
        check(&mut window, &counter)?;
    }
    let history = History::read(&store, &EpisodeId::new("e"))?;
    assert_eq!((history.utilization(), history.turns().len()), (window.utilization(), known.turns.len()));
    for (turn, then) in (1..).zip(known.turns).filter(|_| !known.lossy) {
        assert_eq!(shown(&history.at_turn(&store, turn)?.messages), then, "turn {turn}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn each_protected_span_is_named_once(program in moves(), wide in any::<bool>()) {
        run(program, OneByteAToken, wide).unwrap();
    }

    #[test]
    fn so_it_is_by_any_count(program in moves(), exact in any::<bool>(), wide in any::<bool>()) {
        let done = if exact { run(program, O200k, wide) } else { run(program, FourBytes, wide) };
        done.unwrap();
    }
}

#[test]
fn neighbours_of_any_kind_share_a_line() -> Outcome {
    for order in [[0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [1, 3, 5, 0, 2, 4], [4, 0, 2, 5, 1, 3]] {
        let mut window = open(OneByteAToken)?;
        let lanes = ["work", "failed", "schema", "work", "schema", "target"];
        let ids = filled(&mut window, &lanes)?;
        for at in order {
            evict(&mut window, lanes[at], &[ids[at]])?;
            check(&mut window, &OneByteAToken)?;
        }
        let line = "[s1 to s6: 6 spans, 1212 tokens kept in the store; schema s3 s5, target s6, failed s2; recall any of them by id]";
        assert_eq!(pointers(&window), [line], "{order:?}");
    }
    Ok(())
}

/// What a model asks for, what an action needs and what must not be kept leave a line in two.
#[test]
fn what_comes_back_out_of_the_middle_splits_it() -> Outcome {
    let lanes = ["work", "schema", "target", "work", "failed"];
    let folded =
        "[s1 to s5: 5 spans, 1010 tokens kept in the store; schema s2, target s3, failed s5; recall any of them by id]";
    let apart = [
        "[s1 to s2: 2 spans, 404 tokens kept in the store; schema s2; recall any of them by id]",
        "[s4 to s5: 2 spans, 404 tokens kept in the store; failed s5; recall any of them by id]",
    ];
    let mut window = open(OneByteAToken)?;
    let ids = filled(&mut window, &lanes)?;
    evict_all(&mut window, &ids)?;
    assert_eq!(pointers(&window), [folded]);
    restore(&mut window, "target", ids[2])?;
    assert_eq!(pointers(&window), apart);
    check(&mut window, &OneByteAToken)?;
    evict(&mut window, "target", &[ids[2]])?;
    assert_eq!(pointers(&window), [folded]);

    let write = Write::to("a");
    let Permission::Denied(denied) = window.permit(&write)? else { return Err("they are not there".into()) };
    assert_eq!(denied.evicted(), &ids[1..3]);
    assert_eq!(denied.bring_back().wait()?, &ids[1..3]);
    assert!(pointers(&window)[0].starts_with("[s1 work from read: "), "{:?}", pointers(&window));
    assert_eq!(pointers(&window)[1], apart[1]);
    check(&mut window, &OneByteAToken)?;

    evict_all(&mut window, &ids)?;
    window.redact_protected(ids[2], Mutation::new("a key", "rotate it")?, Authority::of("me")?).wait()?;
    assert_eq!(pointers(&window), apart);
    check(&mut window, &OneByteAToken)?;
    Ok(())
}

/// A summary is shown at the place of its sources, and keeps a line of its own there.
#[test]
fn a_summary_shares_no_line() -> Outcome {
    let mut window = open(OneByteAToken)?;
    let ids = filled(&mut window, &["work", "work", "schema"])?;
    let lanes = window.lanes().externalize().wait()?;
    let text = ModelAnswer::new(Finish::Stop, "short").try_into()?;
    let summary = lanes.work.summarize(ids[0], text, &lanes.recap).wait()?;
    lanes.recap.evict(summary).wait()?;
    drop(lanes);
    evict_all(&mut window, &ids)?;
    let lines = pointers(&window);
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].starts_with("[s4 recap of s1: ") && lines[1].ends_with("; schema s3; recall any of them by id]"));
    check(&mut window, &OneByteAToken)?;
    Ok(())
}

/// One token a byte, and the bytes of the longest text it was asked for.
#[derive(Clone, Default)]
struct Longest(Arc<std::sync::atomic::AtomicUsize>);

impl TokenCounter for Longest {
    fn text(&self, text: &str) -> Result<TokenCount, CounterError> {
        self.0.fetch_max(text.len(), std::sync::atomic::Ordering::Relaxed);
        OneByteAToken.text(text)
    }
}

#[test]
fn a_line_names_so_many_and_no_more() -> Outcome {
    let names = |window: &Windowed| pointers(window).iter().map(|line| named(line).len()).collect::<Vec<_>>();
    let mut window = open(OneByteAToken)?;
    let ids = filled(&mut window, &["schema"; 70])?;
    evict(&mut window, "schema", &ids)?;
    assert_eq!(names(&window), [MOST_NAMED, MOST_NAMED, 70 - 2 * MOST_NAMED]);
    check(&mut window, &OneByteAToken)?;
    // The others are named by their range, however many they are.
    let counter = Longest::default();
    let mut window = open(counter.clone())?;
    let lanes: Vec<_> = (0..400).map(|n| if n % 10 == 0 { "failed" } else { "work" }).collect();
    let ids = filled(&mut window, &lanes)?;
    counter.0.store(0, std::sync::atomic::Ordering::Relaxed);
    for (lane, id) in lanes.iter().zip(&ids) {
        let full = pointers(&window).first().filter(|line| named(line).len() == MOST_NAMED).cloned();
        evict(&mut window, lane, &[*id])?;
        let now = pointers(&window);
        assert!(now.len() <= 2 && full.is_none_or(|full| named(&full) == named(&now[0])), "{now:?}");
    }
    assert_eq!(names(&window), [MOST_NAMED, 40 - MOST_NAMED]);
    let longest = counter.0.load(std::sync::atomic::Ordering::Relaxed);
    assert!(longest < 300, "an edit counted {longest} bytes");
    check(&mut window, &OneByteAToken)?;
    Ok(())
}
