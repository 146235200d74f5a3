//@ R1 E0277 `recap` is evicted before it was externalized
use keepspan::{ContextState, SpanId, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[derived]
    recap: Spans,
}

fn prune(window: &mut Window<Agent, MemoryStore>, id: SpanId) -> Result<(), Box<dyn std::error::Error>> {
    let lanes = window.lanes();
    lanes.recap.evict(id).wait()?;
    Ok(())
}

fn main() {}
