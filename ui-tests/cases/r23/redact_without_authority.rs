//@ R23 E0061 this method takes 3 arguments but 2 arguments were supplied
use keepspan::{ContextState, Mutation, SpanId, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[precondition]
    schema: Spans,
}

fn prune(window: &mut Window<Agent, MemoryStore>, id: SpanId, why: Mutation) -> Result<(), Box<dyn std::error::Error>> {
    window.redact_protected(id, why).wait()?;
    Ok(())
}

fn main() {}
