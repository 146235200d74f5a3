//@ R9 E0277 the trait bound `Everything: 
use keepspan::{ContextState, Fallback, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
#[context(budget = 24_000)]
struct Agent {
    #[precondition]
    schema: Spans,
    #[evictable]
    work: Spans,
}

struct Everything;
impl Fallback for Everything {
    const NAME: &'static str = "everything";
}

fn main() {}
