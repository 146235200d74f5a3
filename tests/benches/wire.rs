//! Import, render and judge beside a hand-written pass of `serde_json` over the same requests. Medians; needs the recorded
//! conversations. `KEEPSPAN_CORPUS=.. cargo bench -p keepspan-tests --bench wire`

mod timing;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    fs,
    hint::black_box,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

use keepspan::{
    ByteEstimate, Episode, TokenCounter, Window,
    presets::Conversation,
    store::MemoryStore,
    tool::{Anthropic, Gemini, OpenAiChat, OpenAiResponses},
    wire::{self, Format},
};
use serde_json::{Value, json};

use self::timing::{interleave, time};

/// Counts what is allocated.
struct Counting;

static CALLS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: as the system's own, which it calls.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        CALLS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const BYTES: usize = 16 << 20;

fn main() {
    let Some(corpus) = std::env::var_os("KEEPSPAN_CORPUS") else {
        return eprintln!("SKIPPED: KEEPSPAN_CORPUS is not set, so there is nothing to import");
    };
    let corpus = Path::new(&corpus);
    let read = |path: &str| fs::read_to_string(corpus.join(path)).unwrap();
    let parsed = |path: &str| serde_json::from_str::<Value>(&read(path)).unwrap();
    println!(
        "| format | MB | text | import | by hand | ratio | by hand, counted | ratio | render | by hand | ratio | judged | allocations of a render |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    let chats = parsed("openai-chat/swe-gym-openhands.json");
    let taus = parsed("tau-bench/airline-gpt4o-writes.json");
    let lists = chats.as_array().unwrap().iter().map(|chat| &chat["messages"]);
    let lists = lists.chain(taus.as_array().unwrap().iter().map(|run| &run["traj"]));
    row("OpenAI Chat", OpenAiChat, "messages", lists.flat_map(|list| list.as_array().unwrap()));
    for (name, file, field) in [
        ("OpenAI Responses", "openai-responses", "input"),
        ("Anthropic", "anthropic-messages", "messages"),
        ("Gemini", "gemini-api", "contents"),
    ] {
        let file = parsed(&format!("{file}/cassettes.json"));
        let exchanges =
            file["conversations"].as_array().unwrap().iter().flat_map(|one| one["exchanges"].as_array().unwrap());
        let last = exchanges.map(|exchange| &exchange["request"]["body"][field]).filter(|list| list.is_array());
        let messages: Vec<_> = last.flat_map(|list| list.as_array().unwrap()).collect();
        match name {
            "Anthropic" => row(name, Anthropic, field, messages.into_iter()),
            "Gemini" => row(name, Gemini, field, messages.into_iter()),
            _ => row(name, OpenAiResponses, field, messages.into_iter()),
        }
    }
}

fn row<'v, F: Format>(name: &str, format: F, field: &str, messages: impl Iterator<Item = &'v Value>) {
    let once: Vec<Value> = messages.cloned().collect();
    let size = serde_json::to_string(&once).unwrap().len();
    let many: Vec<Value> = once.iter().cycle().take(once.len() * (BYTES / size + 1)).cloned().collect();
    let body = json!({ field: many });
    let text = serde_json::to_string(&body).unwrap();
    let megabytes = text.len() as f64 / 1e6;
    let open = || Window::<Conversation, _>::open(MemoryStore::default(), Episode::new("e", "p")).unwrap();

    let import = || {
        let mut window = open();
        time(|| {
            let body: Value = serde_json::from_str(&text).unwrap();
            black_box(window.lanes().import(format, &body).unwrap().spans.len());
        })
    };
    let collected = || texts(&serde_json::from_str(&text).unwrap());
    let counted = || {
        let texts = collected();
        let tokens: u64 = texts.iter().map(|text| u64::from(ByteEstimate.text(text).unwrap().tokens())).sum();
        black_box(tokens);
        texts
    };
    let [ours, by_hand] = interleave(7, import, || time(|| drop(black_box(collected()))));
    let [_, by_hand_counted] = interleave(7, import, || time(|| drop(black_box(counted()))));
    let mut window = open();
    let spans = window.lanes().import(format, &body).unwrap().spans.len();
    let rendered = window.render_for(format).unwrap();
    assert_eq!(rendered.to_value()[field], body[field]);
    let before = CALLS.load(Ordering::Relaxed);
    let again = window.render_for(format).unwrap();
    let allocations = CALLS.load(Ordering::Relaxed) - before;
    assert_eq!(again.body(), rendered.body());
    let [render, written] = interleave(
        7,
        || time(|| drop(black_box(window.render_for(format).unwrap()))),
        || time(|| drop(black_box(serde_json::to_string(&body).unwrap()))),
    );
    let [judged, _] = interleave(7, || time(|| drop(black_box(wire::validate(format, &body)))), || time(|| ()));
    let speed = |micros: f64| megabytes * 1e6 / micros;
    println!(
        "| {name} | {megabytes:.0} | {spans} spans | {:.0} MB/s | {:.0} | {:.2} | {:.0} | {:.2} | {:.0} MB/s | {:.0} | {:.2} | {:.0} MB/s | {allocations} |",
        speed(ours),
        speed(by_hand),
        ours / by_hand,
        speed(by_hand_counted),
        ours / by_hand_counted,
        speed(render),
        speed(written),
        render / written,
        speed(judged),
    );
}

/// What a program that keeps texts itself would collect.
fn texts(body: &Value) -> Vec<String> {
    fn walk(value: &Value, texts: &mut Vec<String>) {
        match value {
            Value::String(text) => texts.push(text.clone()),
            Value::Array(values) => values.iter().for_each(|value| walk(value, texts)),
            Value::Object(fields) => fields.values().for_each(|value| walk(value, texts)),
            _ => {}
        }
    }
    let mut texts = Vec::new();
    walk(body, &mut texts);
    texts
}
