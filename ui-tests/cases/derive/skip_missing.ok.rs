//@ derive - `turn` is no lane, its type is not `Spans`: add `#[context(skip)]`
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[evictable]
    work: Spans,
    #[context(skip)] turn: u32,
}

fn main() {}
