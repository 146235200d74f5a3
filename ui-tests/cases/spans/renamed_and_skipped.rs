//@ spans E0277 the trait bound `Spans: Default` is not satisfied
use keepspan::{ContextState, Spans};

type Text = Spans;

#[derive(ContextState)]
struct Agent {
    #[evictable]
    work: Spans,
    #[context(skip)]
    schema: Text,
}

fn main() {}
