//@ R12 E0080 evaluation panicked: `Migration`: margin 23_000 is not below the 22_000 that a pass could reclaim
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
#[context(budget = 24_000, margin = 2_300)]
struct Migration {
    #[evictable]
    work: Spans,
}

fn main() {}
