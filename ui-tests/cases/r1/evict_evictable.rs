//@ R1 E0277 `work` is evicted before it was externalized
use keepspan::{ContextState, SpanId, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[evictable]
    work: Spans,
}

fn prune(window: &mut Window<Agent, MemoryStore>, id: SpanId) -> Result<(), Box<dyn std::error::Error>> {
    let lanes = window.lanes();
    lanes.work.evict(id).wait()?;
    Ok(())
}

fn main() {}
