//@ R1 E0277 `work` is summarized before it was externalized
use keepspan::{ContextState, SpanId, Spans, SummaryText, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[evictable]
    work: Spans,
    #[derived]
    recap: Spans,
}

fn shrink(window: &mut Window<Agent, MemoryStore>, id: SpanId, text: SummaryText) -> Result<(), Box<dyn std::error::Error>> {
    let lanes = window.lanes();
    lanes.work.summarize(id, text, &lanes.recap).wait()?;
    Ok(())
}

fn main() {}
