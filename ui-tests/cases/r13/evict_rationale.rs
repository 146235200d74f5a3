//@ R13 E0277 `decisions` holds what pruning itself wrote
use keepspan::{ContextState, SpanId, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[rationale]
    decisions: Spans,
}

fn prune(window: &mut Window<Agent, MemoryStore>, id: SpanId) -> Result<(), Box<dyn std::error::Error>> {
    let lanes = window.lanes().externalize().wait()?;
    lanes.decisions.evict(id).wait()?;
    Ok(())
}

fn main() {}
