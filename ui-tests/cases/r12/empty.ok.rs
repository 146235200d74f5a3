//@ R12 E0080 evaluation panicked: `Migration`: budget 0 holds nothing
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
#[context(budget = 8_000)]
struct Migration {
    #[evictable]
    work: Spans,
}

fn main() {}
