//@ derive - `schema` has an empty tool name
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[precondition(tools("describe_table"))]
    schema: Spans,
    #[evictable(otherwise)]
    work: Spans,
}

fn main() {}
