//@ derive - `schema` has an unknown key `tool`, expected one of: `tools`
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[precondition(tools("describe_table"))]
    schema: Spans,
    #[evictable(otherwise)]
    work: Spans,
}

fn main() {}
