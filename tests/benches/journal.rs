//! The README's table of the journal: resume and verify beside the raw engine, and what a million spans cost.
//! `cargo bench -p keepspan-tests --bench journal`

mod timing;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    path::Path,
    sync::atomic::{AtomicBool, AtomicIsize, Ordering::Relaxed},
    time::Duration,
};

use keepspan::{
    Digest, Episode, EpisodeId, Limits, NewSpan, Outcome, SpanId, Window, audit,
    store::{self, EmbeddedStore, MemoryStore},
    tool::Answer,
};
use keepspan_tests::{Agent, FourBytes, memory};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

use self::timing::{median, time};

/// What is allocated now, and the most that was.
struct Peak;

static NOW: AtomicIsize = AtomicIsize::new(0);
static MOST: AtomicIsize = AtomicIsize::new(0);
/// Counting costs, above all on two threads, so it is done only where it is asked for.
static COUNTS: AtomicBool = AtomicBool::new(false);

unsafe impl GlobalAlloc for Peak {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if COUNTS.load(Relaxed) {
            MOST.fetch_max(NOW.fetch_add(layout.size() as isize, Relaxed) + layout.size() as isize, Relaxed);
        }
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if COUNTS.load(Relaxed) {
            NOW.fetch_sub(layout.size() as isize, Relaxed);
        }
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static PEAK: Peak = Peak;

/// The most that `work` allocates beyond what was allocated before it, in MB.
fn peak<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let before = NOW.load(Relaxed);
    MOST.store(before, Relaxed);
    COUNTS.store(true, Relaxed);
    let done = work();
    COUNTS.store(false, Relaxed);
    ((MOST.load(Relaxed) - before) as f64 / 1e6, done)
}

const SPANS: usize = 100_000;
const BYTES: usize = 4_096;
/// Spans a commit.
const GROUP: usize = 50;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    fill(&path);
    println!("| {SPANS} spans of {BYTES} B, all but {GROUP} evicted | time | of raw |");
    println!("| --- | ---: | ---: |");
    let raw = sample(|| raw(&path));
    let row = |what: &str, took: f64| println!("| {what} | {:.1} ms | {:.3} |", took / 1e3, took / raw);
    row("raw engine's scan, and one SHA-256 of each blob", raw);
    row("resume", sample(|| resume(&path)));
    row("resume and verify all", sample(|| resume(&path) + verify(&path)));
    let (megabytes, _) = peak(|| resume(&path));
    println!("\nresume allocates at most {megabytes:.1} MB, and the spans take {} MB", SPANS * BYTES / 1_000_000);
    let (verifying, hashing) = (sample(|| verify(&path)), sample(hash));
    println!("verify: {:.2} GB/s, one core's SHA-256 {:.2} GB/s", speed(verifying), speed(hashing));
    million();
}

fn sample(work: impl FnMut() -> Duration) -> f64 {
    median(std::iter::repeat_with(work).take(5).collect())
}

fn speed(micros: f64) -> f64 {
    (SPANS * BYTES) as f64 / micros / 1e3
}

fn text(n: u64) -> String {
    let mut state = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut letter = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'a' + (state % 26) as u8)
    };
    (0..BYTES).map(|_| letter()).collect()
}

fn episode() -> Episode {
    Episode::new("e", "p").budget(u64::MAX).trust_estimates()
}

fn fill(path: &Path) {
    let store = store::open(path).unwrap();
    let mut window = Window::<Agent, _>::open_with(store, episode(), FourBytes).unwrap();
    for group in 0..SPANS / GROUP {
        let lanes = window.lanes();
        let new = |n: usize| lanes.work.push(NewSpan::tool("read", text((group * GROUP + n) as u64))).unwrap();
        let ids: Vec<_> = (0..GROUP).map(new).collect();
        let lanes = lanes.externalize().wait().unwrap();
        if group + 1 < SPANS / GROUP {
            lanes.work.evict(ids).wait().unwrap();
        }
    }
}

/// The engine alone: every value of every table, and SHA-256 of as many bytes in blobs of the same size.
fn raw(path: &Path) -> Duration {
    let database = Database::open(path).unwrap();
    let read = database.begin_read().unwrap();
    let heads = read.open_table(TableDefinition::<&[u8; 32], &[u8]>::new("heads")).unwrap();
    let pieces = read.open_table(TableDefinition::<u64, &[u8]>::new("pieces")).unwrap();
    let log = read.open_table(TableDefinition::<(&str, u64), &[u8]>::new("log")).unwrap();
    time(|| {
        let mut bytes = 0;
        heads.iter().unwrap().for_each(|entry| bytes += entry.unwrap().1.value().len());
        log.iter().unwrap().for_each(|entry| bytes += entry.unwrap().1.value().len());
        for entry in pieces.iter().unwrap() {
            let entry = entry.unwrap();
            bytes += Digest::of(entry.1.value()).as_bytes().len();
        }
        bytes
    })
}

fn hash() -> Duration {
    let blob = text(7);
    time(|| {
        (0..SPANS).map(|_| usize::from(Digest::of(std::hint::black_box(blob.as_bytes())).as_bytes()[0])).sum::<usize>()
    })
}

fn open(path: &Path) -> EmbeddedStore {
    store::open(path).unwrap()
}

fn resume(path: &Path) -> Duration {
    let store = open(path);
    time(|| Window::<Agent, _>::resume_with(store, episode(), FourBytes).unwrap())
}

fn verify(path: &Path) -> Duration {
    let store = open(path);
    time(|| {
        let verified = audit::verify(&store, &EpisodeId::new("e"), |_| {});
        assert!(verified.faults.is_empty() && verified.blobs == SPANS as u64);
        verified
    })
}

/// What one span costs among a thousand and among a million.
fn million() {
    println!("\n| a span, in memory | among 1,000 | among 1,000,000 | ratio |");
    println!("| --- | ---: | ---: | ---: |");
    let (small, large) = (Among::new(1_000), Among::new(1_000_000));
    for (what, one, other) in [
        ("push, 400 B", small.push, large.push),
        ("evict, 50 at once", small.evict, large.evict),
        ("pass over 200 that are resident, 50 evicted", small.pass, large.pass),
    ] {
        println!("| {what} | {one:.3} us | {other:.3} us | {:.2} |", other / one);
    }
}

struct Among {
    push: f64,
    evict: f64,
    pass: f64,
}

impl Among {
    fn new(spans: usize) -> Self {
        let limits = Limits::of(1_000_000_000).trigger(900_000_000).index(4_000).rationale(100);
        let episode = Episode::new("e", "p").budget(limits).trust_estimates();
        let mut window = Window::<Agent, std::sync::Arc<MemoryStore>>::open_with(memory(), episode, FourBytes).unwrap();
        // All but the newest are pointers, as they are in an episode of that length.
        for _ in 0..spans / 1_000 {
            let ids = push(&mut window, 1_000).1;
            window.lanes().externalize().wait().unwrap().work.evict(ids).wait().unwrap();
        }
        let (mut pushes, mut evicts, mut passes) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..101 {
            let (took, ids) = push(&mut window, 250);
            pushes.push(took / 250);
            let lanes = window.lanes().externalize().wait().unwrap();
            evicts.push(time(|| lanes.work.evict(&ids[..50]).wait().unwrap()) / 50);
            let names = ids[50..100].iter().map(SpanId::to_string);
            passes.push(
                time(|| {
                    let pass = lanes.admit().unwrap_or_else(|refusal| panic!("{refusal}"));
                    let proposal = pass.parse(&Answer::prune(names)).unwrap();
                    assert!(matches!(pass.apply(proposal).wait().unwrap(), Outcome::Pruned(_)));
                }) / 50,
            );
            window.lanes().externalize().wait().unwrap().work.evict(&ids[100..]).wait().unwrap();
        }
        Self { push: median(pushes), evict: median(evicts), pass: median(passes) }
    }
}

fn push(window: &mut Window<Agent, std::sync::Arc<MemoryStore>>, spans: usize) -> (Duration, Vec<SpanId>) {
    let texts: Vec<_> = (0..spans).map(|n| format!("{n:>400}")).collect();
    let lanes = window.lanes();
    let mut ids = Vec::with_capacity(spans);
    let took = time(|| texts.iter().for_each(|text| ids.push(lanes.work.push(text.as_str()).unwrap())));
    (took, ids)
}
