//@ R12 E0080 evaluation panicked: `Migration`: keep 8_000 and fixed 0 reach the trigger 6_666
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
#[context(budget = 8_000, keep = 8_000)]
struct Migration {
    #[evictable]
    work: Spans,
}

fn main() {}
