//@ R12 E0080 evaluation panicked: `Migration`: fixed 3_200 leaves no span any room in the limit 3_000
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
#[context(budget = 3_000, fixed = 3_200)]
struct Migration {
    #[evictable]
    work: Spans,
}

fn main() {}
