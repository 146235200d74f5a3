//@ R12 E0080 evaluation panicked: `Migration`: trigger 11_999 leaves 1 token of the limit 12_000
use keepspan::{ContextState, Spans};

const SIXTH: u64 = 4_000;

#[derive(ContextState)]
#[context(budget = 3 * SIXTH, trigger = 3 * SIXTH - 1)]
struct Migration {
    #[evictable]
    work: Spans,
}

fn main() {}
