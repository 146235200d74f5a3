//@ spans E0063 missing field `schema` in initializer of `Agent`
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[precondition]
    schema: Spans,
}

fn made() -> Agent {
    Agent {}
}

fn main() {}
