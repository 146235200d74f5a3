//@ derive - `work` is a lane and cannot be skipped
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[evictable]
    other: Spans,
    #[context(evictable)]
    work: Spans,
}

fn main() {}
