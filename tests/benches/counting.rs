//! What counting once saves, and how fast each counter is. `cargo bench -p keepspan-tests --bench counting`

use std::{
    fs,
    hint::black_box,
    path::Path,
    time::{Duration, Instant},
};

use keepspan::{ByteEstimate, Cl100k, Episode, Growing, O200k, TokenCounter, Window};
use keepspan_tests::{Agent, memory};
use tiktoken_rs::{cl100k_base_singleton, o200k_base_singleton};

fn main() {
    let began = Instant::now();
    O200k.text("").unwrap();
    println!("first count, which unpacks the vocabulary: {:.0} ms\n", began.elapsed().as_secs_f64() * 1e3);
    let text = sources();
    println!("| what | size | keepspan | tiktoken-rs | ratio |");
    println!("| --- | --- | ---: | ---: | ---: |");
    window(&text);
    growing(&text);
    speed("O200k", &text, &O200k, |text| o200k_base_singleton().count_ordinary(text));
    speed("Cl100k", &text, &Cl100k, |text| cl100k_base_singleton().count_ordinary(text));
    speed("ByteEstimate, against O200k there", &text, &ByteEstimate, |text| {
        o200k_base_singleton().count_ordinary(text)
    });
}

/// This repository's own sources: code and prose.
fn sources() -> String {
    fn add(folder: &Path, into: &mut String) {
        let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        for path in paths {
            if path.is_dir() { add(&path, into) } else { into.push_str(&fs::read_to_string(path).unwrap()) }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut text = fs::read_to_string(root.join("README.md")).unwrap();
    add(&root.join("core/src"), &mut text);
    text
}

/// Pieces of about `length` bytes, as many as asked for, from the beginning again when the text ends.
fn pieces(text: &str, length: usize) -> impl Iterator<Item = &str> {
    let bounds = (0..=text.len() / length).map(move |n| (n * length..).find(|at| text.is_char_boundary(*at)).unwrap());
    let starts = bounds.clone().zip(bounds.skip(1));
    starts.cycle().map(|(from, to)| &text[from..to])
}

/// The tokens in the window, asked after each of 1,000 turns: each span counted once, and all of it counted again.
fn window(text: &str) {
    let turns: Vec<&str> = pieces(text, 400).take(1_000).collect();
    let (ours, once) = time(|| {
        let mut window =
            Window::<Agent, _>::open_with(memory(), Episode::new("e", "p").budget(u64::MAX), O200k).unwrap();
        turns.iter().map(|turn| window.lanes().work.push(*turn).map(|_| window.utilization()).unwrap()).last()
    });
    let (theirs, again) = time(|| {
        let mut all: Vec<&str> = Vec::new();
        let mut count = |turn| {
            all.push(turn);
            all.iter().map(|text| o200k_base_singleton().count_ordinary(text) as u64).sum()
        };
        turns.iter().map(|turn| count(turn)).last()
    });
    assert_eq!(once, again);
    row("tokens in a window, asked each turn", "1,000 turns of 400 B", ours, theirs);
}

/// The tokens of an answer that streams in, asked after each chunk.
fn growing(text: &str) {
    let chunks: Vec<&str> = pieces(text, 20).take(1_000).collect();
    let (ours, once) = time(|| {
        let mut growing = Growing::new(O200k);
        chunks.iter().map(|chunk| growing.push_str(chunk).unwrap().tokens() as usize).last()
    });
    let (theirs, again) = time(|| {
        let mut all = String::new();
        let mut count = |chunk| {
            all.push_str(chunk);
            o200k_base_singleton().count_ordinary(&all)
        };
        chunks.iter().map(|chunk| count(chunk)).last()
    });
    assert_eq!(once, again);
    row("tokens of a growing text, asked each chunk", "1,000 chunks of 20 B", ours, theirs);
}

/// Medians of interleaved runs over the whole text.
fn speed(name: &str, text: &str, ours: &dyn TokenCounter, theirs: fn(&str) -> usize) {
    let (mut one, mut other) = (Vec::new(), Vec::new());
    for _ in 0..9 {
        one.push(time(|| ours.text(text)).0);
        other.push(time(|| theirs(text)).0);
    }
    let [ours, theirs] = [one, other].map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2]
    });
    let rate = |took: Duration| text.len() as f64 / took.as_secs_f64() / 1e6;
    let (size, ratio) = (text.len() / 1_000, rate(ours) / rate(theirs));
    println!("| {name} | {size} kB | {:.0} MB/s | {:.1} MB/s | {ratio:.1} times as fast |", rate(ours), rate(theirs));
}

fn row(what: &str, size: &str, ours: Duration, theirs: Duration) {
    let [ours, theirs] = [ours, theirs].map(|took| took.as_secs_f64() * 1e3);
    println!("| {what} | {size} | {ours:.2} ms | {theirs:.0} ms | {:.0} times less |", theirs / ours);
}

fn time<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let began = Instant::now();
    let done = black_box(work());
    (began.elapsed(), done)
}
