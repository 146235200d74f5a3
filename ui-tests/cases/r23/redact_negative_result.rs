//@ R23 E0277 `failed` cannot be redacted
use keepspan::{ContextState, Mutation, SpanId, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[negative_result]
    failed: Spans,
}

fn forget(window: &mut Window<Agent, MemoryStore>, id: SpanId, why: Mutation) -> Result<(), Box<dyn std::error::Error>> {
    let lanes = window.lanes();
    lanes.failed.redact(id, why).wait()?;
    Ok(())
}

fn main() {}
