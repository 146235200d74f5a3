//@ R9 E0277 `Agent` is pruned before it was externalized
use keepspan::{ContextState, Draft, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
#[context(budget = 4_000)]
struct Agent {
    #[evictable]
    work: Spans,
}

fn prune(window: &mut Window<Agent, MemoryStore>, draft: Draft<Agent>) -> Result<(), Box<dyn std::error::Error>> {
    let lanes = window.lanes();
    drop(lanes.rebase(draft)?);
    Ok(())
}

fn main() {}
