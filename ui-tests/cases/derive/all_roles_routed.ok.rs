//@ derive - `work` is never reached: `roles` already route every role
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[instruction(roles("system", "user"))]
    rules: Spans,
    #[evictable(otherwise)]
    work: Spans,
}

fn main() {}
