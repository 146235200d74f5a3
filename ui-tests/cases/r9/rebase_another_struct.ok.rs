//@ R9 E0308 mismatched types
use keepspan::{ContextState, Draft, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
#[context(budget = 4_000)]
struct Agent {
    #[evictable]
    work: Spans,
}

#[derive(ContextState)]
#[context(budget = 4_000)]
struct Other {
    #[evictable]
    work: Spans,
}

fn prune(window: &mut Window<Agent, MemoryStore>, draft: Draft<Agent>) -> Result<(), Box<dyn std::error::Error>> {
    let lanes = window.lanes().externalize().wait()?;
    drop(lanes.rebase(draft)?);
    Ok(())
}

fn main() {}
