//@ derive - `Agent` routes spans but has no `otherwise` lane
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[precondition(tools("describe_table"))]
    schema: Spans,
    #[evictable]
    work: Spans,
}

fn main() {}
