//! Externalize to a file against the engine by itself. `cargo bench -p keepspan-tests --bench store`

mod pair;

use divan::{Bencher, counter::BytesCount};

use self::pair::{
    Inputs,
    disk::{Disk, Raw, Typed, groups},
};

fn main() {
    divan::main();
}

/// Writes 2,000 spans of 4 KB, so many a commit, every commit durable.
#[divan::bench(types = [Typed, Raw], args = [1, 50], sample_count = 5, sample_size = 1)]
fn externalize_2000<D: Disk>(bencher: Bencher<'_, '_>, per_commit: usize) {
    let groups = groups(&Inputs::new(2_000, 4_096), per_commit);
    bencher.counter(BytesCount::new(2_000_usize * 4_096)).with_inputs(D::open).bench_local_refs(|disk| {
        for group in &groups {
            disk.write(group);
        }
    });
}
