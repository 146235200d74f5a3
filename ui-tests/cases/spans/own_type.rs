//@ spans E0308 mismatched types
use keepspan::ContextState;

struct Spans;

#[derive(ContextState)]
struct Agent {
    #[precondition]
    schema: Spans,
}

fn main() {}
