//@ R4 E0277 `recap` holds summaries, and a summary is not summarized again
use keepspan::{ContextState, SpanId, Spans, SummaryText, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[derived]
    recap: Spans,
}

fn shrink(window: &mut Window<Agent, MemoryStore>, id: SpanId, text: SummaryText) -> Result<(), Box<dyn std::error::Error>> {
    let lanes = window.lanes().externalize().wait()?;
    lanes.recap.summarize(id, text, &lanes.recap).wait()?;
    Ok(())
}

fn main() {}
