//@ R2 - unused `keepspan::Step` that must be used
#![deny(unused_must_use)]

use keepspan::{ContextState, SpanId, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[evictable]
    work: Spans,
}

fn prune(window: &mut Window<Agent, MemoryStore>, id: SpanId) -> Result<(), Box<dyn std::error::Error>> {
    let lanes = window.lanes().externalize().wait()?;
    lanes.work.evict(id).wait()?;
    Ok(())
}

fn main() {}
