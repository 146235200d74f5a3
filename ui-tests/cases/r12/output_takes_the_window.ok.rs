//@ R12 E0080 evaluation panicked: `Migration`: reserve 8_000 leaves nothing of the budget 8_000
use keepspan::{ContextState, Spans};

const WINDOW: u64 = 8_000;
const OUTPUT: u64 = 8_000;

#[derive(ContextState)]
#[context(budget = WINDOW, reserve = OUTPUT / 2)]
struct Migration {
    #[evictable]
    work: Spans,
}

fn main() {}
