//@ consent - unused `Consent` that must be used
#![deny(unused_must_use)]
use keepspan::{ContextState, SpanId, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[scope_qualifier]
    target: Spans,
    #[derived]
    recap: Spans,
}

fn act(window: &mut Window<Agent, MemoryStore>, id: SpanId) -> Result<(), Box<dyn std::error::Error>> {
    drop(window.lanes().target.consent(id)?);
    Ok(())
}

fn main() {}
