//@ derive - `work` is a lane and cannot be skipped
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[evictable]
    other: Spans,
    #[context(skip)]
    work: Spans,
}

fn main() {}
