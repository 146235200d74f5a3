//@ R4 E0061 this method takes 3 arguments but 2 arguments were supplied
use keepspan::{ContextState, SpanId, Spans, SummaryText, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[derived]
    recap: Spans,
}

fn shrink(window: &mut Window<Agent, MemoryStore>, id: SpanId, text: SummaryText) -> Result<(), Box<dyn std::error::Error>> {
    let lanes = window.lanes().externalize().wait()?;
    lanes.recap.escalate(id, text).wait()?;
    Ok(())
}

fn main() {}
