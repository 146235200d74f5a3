//@ R23 E0277 `limits` cannot be redacted
use keepspan::{ContextState, Mutation, SpanId, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[constraint(pinned)]
    limits: Spans,
}

fn forget(window: &mut Window<Agent, MemoryStore>, id: SpanId, why: Mutation) -> Result<(), Box<dyn std::error::Error>> {
    let lanes = window.lanes();
    lanes.limits.redact(id, why).wait()?;
    Ok(())
}

fn main() {}
