//@ R23 E0277 `rules` cannot be redacted
use keepspan::{ContextState, Mutation, SpanId, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[instruction]
    rules: Spans,
}

fn forget(window: &mut Window<Agent, MemoryStore>, id: SpanId, why: Mutation) -> Result<(), Box<dyn std::error::Error>> {
    let lanes = window.lanes();
    lanes.rules.redact(id, why).wait()?;
    Ok(())
}

fn main() {}
