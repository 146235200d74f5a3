//@ derive - `work`: `#[evictable]` cannot be `pinned`
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[evictable(pinned)]
    work: Spans,
}

fn main() {}
