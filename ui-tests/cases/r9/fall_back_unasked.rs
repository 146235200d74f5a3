//@ R9 E0599 no method named `fall_back` found
use keepspan::{ContextState, OldestFirst, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
#[context(budget = 24_000)]
struct Agent {
    #[precondition]
    schema: Spans,
    #[evictable]
    work: Spans,
}

fn act(window: &mut Window<Agent, MemoryStore>) -> Result<(), Box<dyn std::error::Error>> {
    let _ = window.lanes().externalize().wait()?.fall_back(OldestFirst);
    Ok(())
}

fn main() {}
