//@ derive - `asked` is never reached by the role `user`: `rules` already has it
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[instruction(roles("system", "user"))]
    rules: Spans,
    #[constraint(roles("user"))]
    asked: Spans,
    #[evictable(otherwise)]
    work: Spans,
}

fn main() {}
