//! What the types cost: nothing. Counted in allocations, bytes and sizes, never in time.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    sync::Arc,
};

use keepspan::{Episode, Selection, SpanId, Window, store::MemoryStore};
use keepspan_tests::{Agent, memory};

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
