//@ R12 E0080 evaluation panicked: `Migration`: keep 80_000 is more than the whole budget 8_000
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
#[context(budget = 8_000, keep = 80_000)]
struct Migration {
    #[evictable]
    work: Spans,
}

fn main() {}
