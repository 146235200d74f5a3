//@ R12 E0080 evaluation panicked: `Migration`: margin 399 is below the rationale 400
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
#[context(budget = 24_000, margin = 400)]
struct Migration {
    #[evictable]
    work: Spans,
}

fn main() {}
