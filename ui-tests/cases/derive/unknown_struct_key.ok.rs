//@ derive - `Agent` has an unknown key `size`, expected one of: `budget`
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
#[context(budget = 24_000)]
struct Agent {
    #[evictable]
    work: Spans,
}

fn main() {}
