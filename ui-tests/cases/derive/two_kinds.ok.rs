//@ derive - `schema` is both `#[precondition]` and `#[evictable]`: a lane has one kind
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[precondition]
    schema: Spans,
}

fn main() {}
