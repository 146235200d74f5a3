//@ R2 E0277 `Agent` is pushed to while the lanes are externalized
use keepspan::{ContextState, Spans, Window, store::MemoryStore, tool::Anthropic, wire::Imported};

#[derive(ContextState)]
struct Agent {
    #[evictable(otherwise)]
    work: Spans,
}

fn next(window: &mut Window<Agent, MemoryStore>) -> Result<Imported, Box<dyn std::error::Error>> {
    let lanes = window.lanes();
    Ok(lanes.import(Anthropic, &"[]".parse()?)?)
}

fn main() {}
