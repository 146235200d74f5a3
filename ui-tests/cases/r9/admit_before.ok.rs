//@ R9 E0277 `Agent` is pruned before it was externalized
use keepspan::{ContextState, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
#[context(budget = 24_000)]
struct Agent {
    #[precondition]
    schema: Spans,
    #[evictable]
    work: Spans,
}

fn act(window: &mut Window<Agent, MemoryStore>) -> Result<(), Box<dyn std::error::Error>> {
    let lanes = window.lanes().externalize().wait()?;
    let _ = lanes.admit();
    Ok(())
}

fn main() {}
