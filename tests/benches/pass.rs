//! The README's table of passes: the gate, a whole pass in parts, fallbacks, and the crate `context-governor` beside
//! them, in one run. Medians. `cargo bench -p keepspan-tests --bench pass`

mod timing;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use context_governor::{CompactRequest, CompactionPolicy, compact_context};
use keepspan::{
    ByteEstimate, CounterError, Episode, Fallback, FellBack, FixedTemplate, Limits, NewSpan, OldestFirst,
    OneByteAToken, Outcome, SpanId, TokenCount, TokenCounter, Window,
    store::MemoryStore,
    tool::{Answer, Anthropic},
};
use keepspan_tests::{Agent, FourBytes, memory};

use self::timing::{interleave, median, time};

type Memory = Window<Agent, Arc<MemoryStore>>;

fn main() {
    println!("| gate: candidates | of spans | what | keepspan | a candidate | sum by hand | ratio |");
    println!("| ---: | ---: | --- | ---: | ---: | ---: | ---: |");
    [100, 2_000, 100_000].iter().for_each(|&spans| gate(spans, |_| true));
    gate(100_000, |span| span >= 99_000);
    gate(100_000, |span| span % 100 == 0);
    println!("\n| pass over 2,000 messages | counter | admit | read | parse | apply | whole |");
    println!("| --- | --- | ---: | ---: | ---: | ---: | ---: |");
    for named in [10, 50, 100, 200] {
        pass("one byte a token", named, OneByteAToken);
        pass("by bytes, the default", named, ByteEstimate);
    }
    println!("\n| 2,000 messages to {TARGET} tokens | tokens after | keepspan | context-governor | ratio |");
    println!("| --- | ---: | ---: | ---: | ---: |");
    beside();
    println!("\n| fallback, oldest first | spans taken | pointers | lines counted | time | a span taken |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: |");
    for spans in [2_000, 20_000, 100_000] {
        fallback("neighbours fold", spans, 1);
        fallback("a pointer each", spans, 2);
    }
}

/// Evicts what is not to stay, then asks the gate; beside it, the sum of the counts of what stays.
fn gate(spans: usize, stays: impl Fn(usize) -> bool) {
    // Never enough reclaimed, so that asking goes all the way and changes nothing.
    let limits = Limits::of(1 << 40).margin(1 << 39);
    let mut window = open(limits, OneByteAToken);
    let lanes = window.lanes();
    let ids: Vec<_> = (0..spans).map(|n| lanes.work.push(format!("{n:>200}")).unwrap()).collect();
    let lanes = lanes.externalize().wait().unwrap();
    let gone: Vec<_> = (0..spans).filter(|span| !stays(*span)).map(|span| ids[span]).collect();
    if !gone.is_empty() {
        lanes.work.evict(gone).wait().unwrap();
    }
    let messages: Vec<_> = (0..spans).filter(|span| stays(*span)).map(|n| (format!("{n:>200}"), 200_u64)).collect();
    let by_hand = || time(|| messages.iter().map(|(_, tokens)| tokens).sum::<u64>());
    let rounds = (400_000 / spans).clamp(101, 1_001);
    let advice = interleave(rounds, || time(|| lanes.advice()), by_hand);
    let refused = || {
        let lanes = window.lanes().externalize().wait().unwrap();
        time(|| lanes.admit().err().unwrap())
    };
    let refused = interleave(rounds, refused, by_hand);
    for (what, [ours, theirs]) in [("advice", advice), ("admit, refused", refused)] {
        let (left, each, ratio) = (messages.len(), ours * 1e3 / messages.len() as f64, ours / theirs);
        println!("| {left} | {spans} | {what} | {ours:.2} us | {each:.2} ns | {theirs:.2} us | {ratio:.1} |");
    }
}

fn open(limits: Limits, counter: impl TokenCounter + 'static) -> Memory {
    Window::open_with(memory(), Episode::new("e", "p").budget(limits).trust_estimates(), counter).unwrap()
}

/// What both sides hold: one message in ten is a tool's result of 4,000 bytes, the others have 400.
fn texts(spans: usize) -> Vec<String> {
    let line = "row 17 of the listing has a name, a size and a date; ";
    let bytes = |n: usize| if n.is_multiple_of(10) { 4_000 } else { 400 };
    (0..spans).map(|n| format!("{n} {}", line.repeat(bytes(n) / line.len() + 1))[..bytes(n)].to_owned()).collect()
}

/// The tokens of [`texts`] of 2,000, at four bytes a token.
const TOKENS: u64 = 380_000;
/// What is left of them.
const TARGET: u64 = 190_000;

/// Opens a window and pushes: what a message is a result of is a tool's, the rest a model's.
fn filled(limits: Limits, counter: impl TokenCounter + 'static, texts: &[String]) -> Memory {
    let mut window = open(limits, counter);
    push(&mut window, texts);
    drop(window.lanes().externalize().wait().unwrap());
    window
}

fn push(window: &mut Memory, texts: &[String]) {
    let (lanes, tool) = (window.lanes(), Arc::<str>::from("list"));
    for text in texts {
        let span = if text.len() > 400 { NewSpan::tool(tool.clone(), text.as_str()) } else { text.as_str().into() };
        lanes.work.push(span).unwrap();
    }
}

/// What a model answers that names the first so many of the large results.
fn response(named: usize) -> serde_json::Value {
    let names: Vec<_> = (0..named).map(|n| format!("s{}", n * 10 + 1)).collect();
    serde_json::json!({
        "stop_reason": "tool_use",
        "content": [
            { "type": "text", "text": "These listings were read again later." },
            { "type": "tool_use", "id": "t1", "name": "prune_context", "input": { "spans": names } },
        ],
        "usage": { "output_tokens": 400 },
    })
}

/// Each part of a pass over a window that was not touched since it was externalized.
fn one_pass(window: &mut Memory, response: &serde_json::Value) -> [Duration; 4] {
    let lanes = window.lanes().externalize().wait().unwrap();
    let (mut pass, mut answer, mut proposal) = (None, None, None);
    let admit = time(|| pass = lanes.admit().ok());
    let read = time(|| answer = Answer::read(Anthropic, response).ok());
    let pass = pass.unwrap();
    let parse = time(|| proposal = pass.parse(answer.as_ref().unwrap()).ok());
    let proposal = proposal.unwrap();
    let mut applied = None;
    let apply = time(|| applied = pass.apply(proposal).wait().ok());
    assert!(matches!(applied, Some(Outcome::Pruned(_))));
    [admit, read, parse, apply]
}

fn pass(name: &str, named: usize, counter: impl TokenCounter + Copy + 'static) {
    let (texts, response) = (texts(2_000), response(named));
    let tokens: u64 = texts.iter().map(|text| u64::from(counter.text(text).unwrap().tokens())).sum();
    let limits = Limits::of(tokens * 7 / 6);
    let rounds: Vec<_> = (0..101).map(|_| one_pass(&mut filled(limits, counter, &texts), &response)).collect();
    let parts = [0, 1, 2, 3].map(|part| median(rounds.iter().map(|parts| parts[part]).collect()));
    let whole = median(rounds.iter().map(|parts| parts.iter().sum()).collect());
    let [admit, read, parse, apply] = parts.map(|micros| format!("{micros:.1} us"));
    println!("| evicts {named} | {name} | {admit} | {read} | {parse} | {apply} | {whole:.1} us |");
}

/// Both compact the same texts to the same tokens, by the same count of four bytes a token.
fn beside() {
    let texts = texts(2_000);
    let (pass, fallback) = (Limits::of(TOKENS + 60_000), Limits::of(TARGET * 6 / 5));
    let request = request(&texts);
    let compacted = compact_context(request.clone()).unwrap().receipt.compacted_approx_tokens as u64;
    let compact = || {
        let request = request.clone();
        time(|| compact_context(request).unwrap())
    };
    let row = |what: &str, after: u64, ours: &mut dyn FnMut() -> Duration| {
        assert!(after < TARGET);
        let [ours, theirs] = interleave(21, ours, compact);
        println!("| {what} | {after}, {compacted} | {ours:.1} us | {theirs:.1} us | 1/{:.0} |", theirs / ours);
    };
    let chosen = response(200);
    let open = |limits| filled(limits, FourBytes, &texts);
    let after = |limits, act: &dyn Fn(&mut Memory)| {
        let mut window = open(limits);
        act(&mut window);
        window.utilization()
    };
    let left = after(pass, &|window| {
        one_pass(window, &chosen);
    });
    row("a pass, admit to apply", left, &mut || one_pass(&mut open(pass), &chosen).iter().sum());
    row("the same after pushing and externalizing all", left, &mut || {
        let mut window = self::open(pass, FourBytes);
        let entering = time(|| {
            push(&mut window, &texts);
            drop(window.lanes().externalize().wait().unwrap());
        });
        entering + one_pass(&mut window, &chosen).iter().sum::<Duration>()
    });
    let left = after(fallback, &|window| {
        fall_back(window, OldestFirst);
    });
    row("a fallback, oldest first", left, &mut || fall_back(&mut open(fallback), OldestFirst).0);
    let left = after(fallback, &|window| {
        fall_back(window, FixedTemplate);
    });
    row("a fallback, fixed template", left, &mut || fall_back(&mut open(fallback), FixedTemplate).0);
}

fn request(texts: &[String]) -> CompactRequest {
    let message = |text: &String| context_governor::Message {
        id: None,
        role: if text.len() > 400 { "tool" } else { "assistant" }.to_owned(),
        content: text.clone(),
        name: None,
        metadata: BTreeMap::new(),
    };
    CompactRequest {
        session_id: "e".to_owned(),
        messages: texts.iter().map(message).collect(),
        policy: CompactionPolicy { target_tokens: TARGET as usize, ..CompactionPolicy::default() },
        focus: None,
    }
}

/// Over the limit, so refused: frees down to the trigger. How long that took, and how many spans left.
fn fall_back<B: Fallback>(window: &mut Memory, strategy: B) -> (Duration, usize) {
    let refusal = window.lanes().externalize().wait().unwrap().admit().err().unwrap();
    let mut freed = None;
    let took = time(|| freed = refusal.fall_back(strategy).wait().ok());
    match freed {
        Some(FellBack::Freed(report)) => (took, report.tombstones().len()),
        _ => unreachable!("the window is over its limit"),
    }
}

/// One token a byte, and how often it was asked.
#[derive(Clone)]
struct Asked(Arc<AtomicU64>);

impl TokenCounter for Asked {
    fn text(&self, text: &str) -> Result<TokenCount, CounterError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        OneByteAToken.text(text)
    }
}

/// From a quarter above the trigger: of every `kinds` spans, one is evictable and the others are instructions.
fn fallback(what: &str, spans: usize, kinds: usize) {
    let text = |n: usize| format!("{n:>400}");
    let limits = Limits::of(400 * spans as u64 * 24 / 25);
    let asked = Asked(Arc::default());
    let fill = || {
        let mut window = open(limits, asked.clone());
        let lanes = window.lanes();
        let push =
            |n: usize| if n.is_multiple_of(kinds) { lanes.work.push(text(n)) } else { lanes.rules.push(text(n)) };
        let _: Vec<SpanId> = (0..spans).map(|n| push(n).unwrap()).collect();
        drop(lanes.externalize().wait().unwrap());
        window
    };
    let mut window = fill();
    let before = asked.0.load(Ordering::Relaxed);
    let (_, taken) = fall_back(&mut window, OldestFirst);
    let lines = asked.0.load(Ordering::Relaxed) - before;
    let pointers = if kinds == 1 { 1 } else { taken };
    let rounds = (40_000 / spans).clamp(3, 21);
    let took = median((0..rounds).map(|_| fall_back(&mut fill(), OldestFirst).0).collect());
    let each = took * 1e3 / taken as f64;
    println!("| {what}, {spans} spans | {taken} | {pointers} | {lines} | {took:.1} us | {each:.0} ns |");
}
