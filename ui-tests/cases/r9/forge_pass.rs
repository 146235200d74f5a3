//@ R9 E0451 fields
use keepspan::{ContextState, Pass, Spans, store::MemoryStore};

#[derive(ContextState)]
#[context(budget = 24_000)]
struct Agent {
    #[precondition]
    schema: Spans,
    #[evictable]
    work: Spans,
}

fn forge(pass: Pass<'_, Agent, MemoryStore>) -> Pass<'_, Agent, MemoryStore> {
    Pass { ..pass }
}

fn main() {}
