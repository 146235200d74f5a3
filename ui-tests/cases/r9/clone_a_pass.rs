//@ R9 E0599 no method named `clone`
use keepspan::{ContextState, Pass, Spans, store::MemoryStore};

#[derive(ContextState)]
#[context(budget = 24_000)]
struct Agent {
    #[precondition]
    schema: Spans,
    #[evictable]
    work: Spans,
}

fn twice(pass: Pass<'_, Agent, MemoryStore>) {
    let _ = pass.clone();
}

fn main() {}
