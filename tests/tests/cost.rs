//! What the types cost: nothing. Counted in allocations, bytes and sizes, never in time.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use keepspan::{
    Action, Advice, CounterError, Episode, FellBack, Limits, OldestFirst, OneByteAToken, Selection, Signature, SpanId,
    TokenCount, TokenCounter, Window, presets::Conversation, store::MemoryStore, tool::OpenAiChat,
};
use keepspan_tests::{Agent, memory};
use serde_json::json;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// The system's allocator, with each thread's requests counted, since tests run side by side.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static LIVE: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

fn grow(bytes: usize) {
    ALLOCATIONS.set(ALLOCATIONS.get() + 1);
    LIVE.set(LIVE.get() + bytes as i64);
    PEAK.set(PEAK.get().max(LIVE.get()));
}

fn shrink(bytes: usize) {
    LIVE.set(LIVE.get() - bytes as i64);
}

// `realloc` stays the provided one, which allocates, copies and frees: a growing vector counts with its old bytes and
// its new ones, as it must be able to lie in memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        shrink(layout.size());
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The allocations of `work`, and what it gave.
fn allocations<T>(work: impl FnOnce() -> T) -> (u64, T) {
    let before = ALLOCATIONS.get();
    let done = work();
    (ALLOCATIONS.get() - before, done)
}

fn window() -> Result<Window<Agent, Arc<MemoryStore>>, keepspan::OpenError> {
    Window::open(memory(), Episode::new("e", "p").budget(u64::MAX))
}

#[test]
fn lending_handles_allocates_nothing() -> Outcome {
    let mut window = window()?;
    let (count, lanes) = allocations(|| window.lanes());
    assert_eq!(count, 0);
    lanes.work.push("text")?;
    let (count, lanes) = allocations(|| window.lanes());
    assert_eq!(count, 0, "whatever the window holds");
    drop(lanes);
    Ok(())
}

#[test]
fn externalizing_nothing_allocates_nothing() -> Outcome {
    let mut window = window()?;
    let (count, lanes) = allocations(|| window.lanes().externalize().wait());
    drop(lanes?);
    assert_eq!(count, 0, "in an empty window");
    window.lanes().work.push("text")?;
    drop(window.lanes().externalize().wait()?);
    let (count, lanes) = allocations(|| window.lanes().externalize().wait());
    drop(lanes?);
    assert_eq!(count, 0, "when the store has everything");
    Ok(())
}

#[test]
fn a_step_allocates_its_selection_only() -> Outcome {
    let mut window = window()?;
    let lanes = window.lanes();
    let ids: Vec<SpanId> = (0..10).map(|n| lanes.work.push(format!("text {n}"))).collect::<Result<_, _>>()?;
    let lanes = lanes.externalize().wait()?;
    let (one, many) = (ids[0], ids.clone());
    let (count, step) = allocations(|| lanes.work.evict(one));
    assert_eq!(count, 1, "the vector of one id");
    drop(step);
    let (count, step) = allocations(|| lanes.work.evict(ids.as_slice()));
    assert_eq!(count, 1, "the vector of ten");
    drop(step);
    let (count, step) = allocations(|| lanes.work.evict(many));
    assert_eq!(count, 0, "a vector that is given is taken as it is");
    step.wait()?;
    Ok(())
}

#[test]
fn a_handle_is_as_large_as_a_reference() -> Outcome {
    fn same<Typed, Twin>(_: &Typed) {
        assert_eq!((size_of::<Typed>(), align_of::<Typed>()), (size_of::<Twin>(), align_of::<Twin>()));
    }
    let mut window = window()?;
    let lanes = window.lanes();
    same::<_, &()>(&lanes.work);
    // Nine handles and the window they are lent by.
    same::<_, [&(); 10]>(&lanes);
    let id = lanes.work.push("text")?;
    same::<_, &()>(&lanes.externalize());
    let lanes = window.lanes().externalize().wait()?;
    same::<_, &()>(&lanes.schema);
    same::<_, (&(), u16, Selection)>(&lanes.work.evict(id));
    Ok(())
}

#[test]
fn a_window_takes_little_more_than_its_text() -> Outcome {
    const SPANS: usize = 20_000;
    const BYTES: usize = 1_000;
    let text = "x".repeat(BYTES);
    let before = LIVE.get();
    let mut window = window()?;
    PEAK.set(LIVE.get());
    let lanes = window.lanes();
    for _ in 0..SPANS {
        lanes.work.push(text.as_str())?;
    }
    let (peak, held) = (PEAK.get() - before, LIVE.get() - before);
    drop(lanes);
    drop(window);
    let most = (SPANS * BYTES) as i64 * 11 / 10 + SPANS as i64 * 96;
    assert!(peak <= most, "{peak} bytes at the peak, {held} held, {most} allowed");
    println!("{} bytes a span beside the text at the peak, {} held", overhead(peak), overhead(held));
    return Ok(());

    fn overhead(bytes: i64) -> i64 {
        bytes / SPANS as i64 - BYTES as i64
    }
}

/// A window of so many spans of 1,000 tokens, all in the store, with room for a pass when `margin` allows it.
/// However many calls there are, and whatever left.
#[test]
fn a_render_allocates_its_output_and_the_pointers_in_it() -> Outcome {
    for turns in [2, 200] {
        let turn = |n: usize| {
            let ids = [format!("a{n}"), format!("b{n}")];
            let call = |id: &String| json!({ "id": id, "type": "function", "function": { "name": "read", "arguments": "{}" } });
            let result =
                |id: &String| json!({ "role": "tool", "tool_call_id": id, "content": "3.14, 1.59; ".repeat(80) });
            let calls = json!({ "role": "assistant", "content": null, "tool_calls": ids.each_ref().map(call) });
            [calls, result(&ids[1]), result(&ids[0])]
        };
        let history: Vec<_> = (0..turns).flat_map(turn).collect();
        let mut window = Window::<Conversation, _>::open(memory(), Episode::new("e", "p"))?;
        let imported = window.lanes().import(OpenAiChat, &history.into())?;
        let (count, rendered) = allocations(|| window.render_for(OpenAiChat));
        assert_eq!((count, rendered?.unsealed()), (1, &[][..]), "{turns} turns");
        let lanes = window.lanes().externalize().wait()?;
        let gone: Vec<_> = imported.spans.iter().copied().step_by(3).take(turns - 1).collect();
        lanes.said.evict(gone).wait()?;
        let (few, rendered) = allocations(|| window.render_for(OpenAiChat));
        assert!(rendered?.history().contains("[s1 to "));
        assert!(few <= 6, "{few} of {turns} turns");
    }
    Ok(())
}

fn candidates(spans: u64, margin: u64) -> Result<Window<Agent, Arc<MemoryStore>>, Box<dyn std::error::Error>> {
    let trigger = (1_000 * spans).max(1_000);
    let limits = Limits::of(trigger + 100_000).index(40_000).rationale(400).trigger(trigger).margin(margin);
    let mut window = Window::<Agent, _>::open_with(memory(), Episode::new("e", "p").budget(limits), OneByteAToken)?;
    let lanes = window.lanes();
    for n in 0..spans {
        lanes.work.push(format!("{n:>1000}"))?;
    }
    drop(lanes.externalize().wait()?);
    Ok(window)
}

#[test]
fn asking_the_gate_allocates_nothing() -> Outcome {
    for (spans, margin) in [(0, 400), (100, 119_000), (2_000, 400), (20_000, 1_000_000)] {
        let mut window = candidates(spans, margin)?;
        let lanes = window.lanes().externalize().wait()?;
        let (count, advice) = allocations(|| lanes.advice());
        assert_eq!(count, 0, "{spans} candidates: {advice:?}");
        assert_eq!(matches!(advice, Advice::Prune(_)), spans == 2_000, "{advice:?}");
        if let Err(refusal) = lanes.admit() {
            // The first refusal is new to the books, the next are only counted.
            drop(refusal);
            let lanes = window.lanes().externalize().wait()?;
            let (count, refusal) = allocations(|| lanes.admit());
            assert_eq!((count, refusal.is_err()), (0, true), "{spans} candidates");
        }
    }
    Ok(())
}

#[test]
fn an_admitted_pass_allocates_its_index_only() -> Outcome {
    let mut counts = Vec::new();
    for spans in [2_000, 20_000] {
        let mut window = candidates(spans, 400)?;
        let lanes = window.lanes().externalize().wait()?;
        PEAK.set(LIVE.get());
        let before = LIVE.get();
        let (count, pass) = allocations(|| lanes.admit());
        let peak = PEAK.get() - before;
        let pass = pass.map_err(|refusal| refusal.to_string())?;
        assert_eq!(pass.index().offers().len(), 200);
        assert!(peak < 100_000, "{peak} bytes for 200 lines of {spans} candidates");
        counts.push(count);
    }
    assert_eq!(counts[0], counts[1], "whatever the window holds");
    // A line of text, and its content as the counter takes it; the vectors of units and offers, and a line's buffer.
    assert!(counts[0] <= 2 * 200 + 16, "{} allocations for 200 lines", counts[0]);
    Ok(())
}

/// A request of ten fields and, with 900 bytes of SQL, about 1 KB.
#[derive(Action)]
#[action(state = Agent, requires(schema, target), destructive)]
struct AlterColumn<'a> {
    sql: String,
    table: &'a str,
    column: char,
    from: Option<&'a str>,
    to: Box<str>,
    rows: u64,
    share: f64,
    online: bool,
    tags: Vec<&'a str>,
    limits: (u8, i32),
}

#[test]
fn a_signature_allocates_its_form_only() {
    let request = |bytes| AlterColumn {
        sql: "x".repeat(bytes),
        table: "users",
        column: 'n',
        from: None,
        to: "BIGINT".into(),
        rows: 1 << 40,
        share: 0.5,
        online: true,
        tags: vec!["a", "b"],
        limits: (1, -1),
    };
    let (small, large) = (request(900), request(9_000));
    let (count, signature) = allocations(|| small.signature());
    assert_eq!(count, 1);
    let call = serde_json::json!({
        "sql": small.sql, "table": "users", "column": "n", "to": "BIGINT", "rows": 1_u64 << 40, "share": 0.5,
        "online": true, "tags": ["a", "b"], "limits": [1, -1],
    });
    assert_eq!(allocations(|| Signature::of("AlterColumn", &call)), (1, signature), "JSON whose keys are in order");
    assert!(allocations(|| large.signature()).0 <= 3, "it grows as any vector");
}

/// One token a byte, and how often it was asked.
struct Asked(Arc<AtomicU64>);

impl TokenCounter for Asked {
    fn text(&self, text: &str) -> Result<TokenCount, CounterError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        OneByteAToken.text(text)
    }
}

/// Of every two spans the second never leaves, so that each that does has a pointer of its own; lengths differ.
#[test]
fn a_fallback_takes_the_fewest_and_prices_few_trials() -> Outcome {
    for (spans, spread) in [(40, 1), (400, 700), (4_000, 1_900), (4_000, 13)] {
        let length = |n: usize| 150 + n * 7_919 % spread;
        let tokens: usize = (0..spans).map(length).sum();
        let limits = Limits::of(tokens as u64 * 9 / 10);
        let asked = Arc::new(AtomicU64::new(0));
        let episode = Episode::new("e", "p").budget(limits);
        let mut window = Window::<Agent, _>::open_with(memory(), episode, Asked(asked.clone()))?;
        let lanes = window.lanes();
        for n in 0..spans {
            let text = "x".repeat(length(n));
            if n % 2 == 0 { lanes.work.push(text) } else { lanes.rules.push(text) }?;
        }
        let refusal = lanes.externalize().wait()?.admit().err().ok_or("it is over its budget")?;
        let before = asked.load(Ordering::Relaxed);
        let FellBack::Freed(report) = refusal.fall_back(OldestFirst).wait()? else { return Err("unchanged".into()) };
        let priced = asked.load(Ordering::Relaxed) - before;
        let taken: Vec<_> = report.tombstones().iter().map(|tombstone| tombstone.span()).collect();
        assert!(priced <= 8 * taken.len() as u64, "{priced} lines for {} pointers", taken.len());
        let trigger = window.budget().ok_or("it has one")?.trigger();
        assert!(window.utilization() < trigger);
        let last = *taken.last().ok_or("some left")?;
        window.lanes().externalize().wait()?.work.restore(last).wait()?;
        assert!(window.utilization() >= trigger, "{last} need not have left");
    }
    Ok(())
}
