//@ derive - `schema` has no kind: add one of
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    schema: Spans,
}

fn main() {}
