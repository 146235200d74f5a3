//@ R9 E0382 use of moved value: `pass`
use keepspan::{ContextState, Pass, Proposal, Spans, store::MemoryStore};

#[derive(ContextState)]
#[context(budget = 24_000)]
struct Agent {
    #[precondition]
    schema: Spans,
    #[evictable]
    work: Spans,
}

fn twice(pass: Pass<'_, Agent, MemoryStore>, one: Proposal, other: Proposal) {
    let _ = pass.apply(one);
    let _ = other;
}

fn main() {}
