//@ R5 E0277 `work` holds no summaries
use keepspan::{ContextState, SpanId, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[derived]
    work: Spans,
}

fn prune(window: &mut Window<Agent, MemoryStore>, id: SpanId) -> Result<(), Box<dyn std::error::Error>> {
    let lanes = window.lanes();
    lanes.work.reground(id).wait()?;
    Ok(())
}

fn main() {}
