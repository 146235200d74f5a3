//@ R23 E0277 `recap` cannot be discarded
use keepspan::{ContextState, Mutation, SpanId, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[evictable]
    recap: Spans,
}

fn forget(window: &mut Window<Agent, MemoryStore>, id: SpanId, why: Mutation) -> Result<(), Box<dyn std::error::Error>> {
    let lanes = window.lanes();
    lanes.recap.discard(id, why).wait()?;
    Ok(())
}

fn main() {}
