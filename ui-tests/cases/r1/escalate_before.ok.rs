//@ R1 E0277 `recap` is summarized before it was externalized
use keepspan::{ContextState, Escalation, SpanId, Spans, SummaryText, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[derived]
    recap: Spans,
}

fn shrink(window: &mut Window<Agent, MemoryStore>, id: SpanId, text: SummaryText, why: Escalation) -> Result<(), Box<dyn std::error::Error>> {
    let lanes = window.lanes().externalize().wait()?;
    lanes.recap.escalate(id, text, why).wait()?;
    Ok(())
}

fn main() {}
