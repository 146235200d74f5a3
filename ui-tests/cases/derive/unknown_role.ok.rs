//@ derive - `rules` has an unknown role `human`, expected one of
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[instruction(roles("user"))]
    rules: Spans,
    #[evictable(otherwise)]
    work: Spans,
}

fn main() {}
