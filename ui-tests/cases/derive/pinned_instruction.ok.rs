//@ derive - `rules`: `#[instruction]` already never leaves: remove `pinned`
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[instruction]
    rules: Spans,
}

fn main() {}
