//@ R12 E0080 evaluation panicked: `Migration`: reserve 200 leaves nothing of the budget 100
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
#[context(budget = 300, reserve = 200)]
struct Migration {
    #[evictable]
    work: Spans,
}

fn main() {}
