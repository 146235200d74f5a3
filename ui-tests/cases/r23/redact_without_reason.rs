//@ R23 E0061 this method takes 2 arguments but 1 argument was supplied
use keepspan::{ContextState, SpanId, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[evictable]
    work: Spans,
}

fn prune(window: &mut Window<Agent, MemoryStore>, id: SpanId) -> Result<(), Box<dyn std::error::Error>> {
    let lanes = window.lanes();
    lanes.work.redact(id).wait()?;
    Ok(())
}

fn main() {}
