//@ R20 E0277 `decisions` holds `Rationale` spans, and nobody consents in those
use keepspan::{Consent, ContextState, SpanId, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[scope_qualifier]
    target: Spans,
    #[rationale]
    decisions: Spans,
}

fn act(window: &mut Window<Agent, MemoryStore>, id: SpanId) -> Result<Consent, Box<dyn std::error::Error>> {
    Ok(window.lanes().decisions.consent(id)?)
}

fn main() {}
