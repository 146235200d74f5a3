//@ keep E0277 `rules` holds `Instruction` spans, which never leave the window
use keepspan::{ContextState, SpanId, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[evictable]
    rules: Spans,
}

fn prune(window: &mut Window<Agent, MemoryStore>, id: SpanId) -> Result<(), Box<dyn std::error::Error>> {
    let lanes = window.lanes().externalize().wait()?;
    lanes.rules.evict(id).wait()?;
    Ok(())
}

fn main() {}
