//@ R23 E0277 `decisions` cannot be discarded
use keepspan::{ContextState, Mutation, SpanId, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[rationale]
    decisions: Spans,
}

fn forget(window: &mut Window<Agent, MemoryStore>, id: SpanId, why: Mutation) -> Result<(), Box<dyn std::error::Error>> {
    let lanes = window.lanes();
    lanes.decisions.discard(id, why).wait()?;
    Ok(())
}

fn main() {}
