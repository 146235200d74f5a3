//@ R12 E0080 evaluation panicked: `Migration`: fixed 29_000 reaches the trigger 27_852
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
#[context(budget = 32_768, fixed = 29_000, trigger = 27_852)]
struct Migration {
    #[evictable]
    work: Spans,
}

fn main() {}
