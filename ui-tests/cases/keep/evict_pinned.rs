//@ keep E0277 `schema` holds `Pinned<Precondition>` spans, which never leave the window
use keepspan::{ContextState, SpanId, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[precondition(pinned)]
    schema: Spans,
}

fn prune(window: &mut Window<Agent, MemoryStore>, id: SpanId) -> Result<(), Box<dyn std::error::Error>> {
    let lanes = window.lanes().externalize().wait()?;
    lanes.schema.evict(id).wait()?;
    Ok(())
}

fn main() {}
