//@ R12 E0080 evaluation panicked: `Migration`: trigger 23_000 is above the limit 20_000
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
#[context(budget = 24_000, reserve = 4_000, trigger = 23_000)]
struct Migration {
    #[evictable]
    work: Spans,
}

fn main() {}
