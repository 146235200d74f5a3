//@ R9 E0451 fields
use keepspan::{ContextState, Refusal, Spans, store::MemoryStore};

#[derive(ContextState)]
#[context(budget = 24_000)]
struct Agent {
    #[precondition]
    schema: Spans,
    #[evictable]
    work: Spans,
}

fn forge(refusal: Refusal<'_, Agent, MemoryStore>) -> Refusal<'_, Agent, MemoryStore> {
    Refusal { ..refusal }
}

fn main() {}
