//@ R3 E0277 `schema` is kept word for word
use keepspan::{ContextState, SpanId, Spans, SummaryText, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[evictable]
    schema: Spans,
    #[derived]
    recap: Spans,
}

fn shrink(window: &mut Window<Agent, MemoryStore>, id: SpanId, text: SummaryText) -> Result<(), Box<dyn std::error::Error>> {
    let lanes = window.lanes().externalize().wait()?;
    lanes.schema.summarize(id, text, &lanes.recap).wait()?;
    Ok(())
}

fn main() {}
