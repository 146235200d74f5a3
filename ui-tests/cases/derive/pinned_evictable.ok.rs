//@ derive - `work`: `#[evictable]` cannot be `pinned`
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[constraint(pinned)]
    work: Spans,
}

fn main() {}
