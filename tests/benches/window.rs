//! Push, evict and render against the untyped twin. `cargo bench -p keepspan-tests --bench window`

mod pair;

use std::cell::RefCell;

use divan::Bencher;

use self::pair::{Evicting, Inputs, Lane, SIZES, Side, Typed, raw};

fn main() {
    pair::same_work();
    divan::main();
}

/// Fills a window with spans of 400 bytes.
#[divan::bench(types = [Typed, raw::Window], args = SIZES, sample_size = 1)]
fn push<T: Side>(bencher: Bencher<'_, '_>, spans: usize) {
    let inputs = Inputs::new(spans, 400);
    bencher.counter(divan::counter::ItemsCount::new(spans)).with_inputs(T::open).bench_local_refs(|side| {
        side.fill(Lane::Evictable, &inputs);
    });
}

/// Evicts ten spans: the cost is theirs, whatever the window holds.
#[divan::bench(types = [Typed, raw::Window], args = SIZES, sample_size = 1, sample_count = 1_000)]
fn evict_10_into_one_pointer<T: Side>(bencher: Bencher<'_, '_>, spans: usize) {
    evict::<T>(bencher, spans, Lane::Evictable);
}

/// As above, in a lane whose spans the pointer names.
#[divan::bench(types = [Typed, raw::Window], args = SIZES, sample_size = 1, sample_count = 1_000)]
fn evict_10_named<T: Side>(bencher: Bencher<'_, '_>, spans: usize) {
    evict::<T>(bencher, spans, Lane::Protected);
}

fn evict<T: Side>(bencher: Bencher<'_, '_>, spans: usize, lane: Lane) {
    let inputs = Inputs::new(spans, 400);
    // A group is taken before the clock starts, since that now and then fills a new window.
    let window = RefCell::new(Evicting::<T>::new(lane, &inputs));
    bencher.with_inputs(|| window.borrow_mut().group()).bench_local_values(|group| window.borrow_mut().evict(group));
}

/// Renders a window of which a quarter is evicted, ten spans a pointer.
#[divan::bench(types = [Typed, raw::Window], args = SIZES)]
fn render<T: Side>(bencher: Bencher<'_, '_>, spans: usize) {
    let inputs = Inputs::new(spans, 400);
    let side = Evicting::<T>::new(Lane::Evictable, &inputs).all();
    bencher.bench_local(|| side.render());
}
