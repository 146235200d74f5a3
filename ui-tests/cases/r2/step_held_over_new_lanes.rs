//@ R2 E0499 cannot borrow `*window` as mutable more than once at a time
use keepspan::{ContextState, SpanId, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[evictable]
    work: Spans,
}

fn prune(window: &mut Window<Agent, MemoryStore>, id: SpanId) -> Result<(), Box<dyn std::error::Error>> {
    let lanes = window.lanes().externalize().wait()?;
    let step = lanes.work.evict(id);
    window.lanes().work.push("late")?;
    step.wait()?;
    Ok(())
}

fn main() {}
