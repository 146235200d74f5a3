//@ R20 E0277 `recap` holds `Derived` spans, and nobody consents in those
use keepspan::{Consent, ContextState, SpanId, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[scope_qualifier]
    target: Spans,
    #[derived]
    recap: Spans,
}

fn act(window: &mut Window<Agent, MemoryStore>, id: SpanId) -> Result<Consent, Box<dyn std::error::Error>> {
    Ok(window.lanes().target.consent(id)?)
}

fn main() {}
