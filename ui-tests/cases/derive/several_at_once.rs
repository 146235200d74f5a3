//@ derive - `rules` has an unknown key `role`
//@ derive - `schema` has no kind: add one of
//@ derive - `turn` is no lane, its type is not `Spans`
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    schema: Spans,
    turn: u32,
    #[instruction(role("user"))]
    rules: Spans,
}

fn main() {}
