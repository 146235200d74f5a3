//@ derive - `schema` is `#[precondition]`, so its type must be `Spans`
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[precondition]
    schema: Spans,
}

fn main() {}
