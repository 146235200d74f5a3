//@ derive - `schema`: `*` stands only at the end of a tool pattern
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[precondition(tools("db_*_read"))]
    schema: Spans,
    #[evictable(otherwise)]
    work: Spans,
}

fn main() {}
