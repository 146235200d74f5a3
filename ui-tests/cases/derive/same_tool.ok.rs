//@ derive - `schema` is never reached by the tool `describe_table`: `plans` already has it
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[invariant(tools("describe_table"))]
    plans: Spans,
    #[precondition(tools("describe_*"))]
    schema: Spans,
    #[evictable(otherwise)]
    work: Spans,
}

fn main() {}
