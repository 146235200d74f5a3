//@ derive - `plans` is never reached: `work` already has `otherwise`
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[evictable(otherwise)]
    work: Spans,
    #[evictable]
    plans: Spans,
}

fn main() {}
