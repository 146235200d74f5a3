//@ R9 E0599 no method named `apply` found
use keepspan::{ContextState, Proposal, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
#[context(budget = 24_000)]
struct Agent {
    #[precondition]
    schema: Spans,
    #[evictable]
    work: Spans,
}

fn act(window: &mut Window<Agent, MemoryStore>, proposal: Proposal) {
    let _ = window.apply(proposal);
}

fn main() {}
