//@ R12 E0080 evaluation panicked: `Migration`: trigger 20_000 leaves 4_000 tokens of the limit 24_000, and deciding costs 5_400
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
#[context(budget = 24_000, index = 3_000)]
struct Migration {
    #[evictable]
    work: Spans,
}

fn main() {}
