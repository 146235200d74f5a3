//@ R12 - `trigger` is a constant of its own: write `Migration`, not `Self`
use keepspan::{ContextState, Spans};

impl Migration {
    const TRIGGER: u64 = 20_000;
}

#[derive(ContextState)]
#[context(budget = 24_000, trigger = Self::TRIGGER)]
struct Migration {
    #[evictable]
    work: Spans,
}

fn main() {}
