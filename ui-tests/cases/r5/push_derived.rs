//@ R5 E0277 `recap` holds summaries with their sources
use keepspan::{ContextState, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[derived]
    recap: Spans,
}

fn note(window: &mut Window<Agent, MemoryStore>) -> Result<(), Box<dyn std::error::Error>> {
    let lanes = window.lanes();
    lanes.recap.push("all is well")?;
    Ok(())
}

fn main() {}
