//@ R9 E0505 cannot move out of `lanes` because it is borrowed
use keepspan::{ContextState, SpanId, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
#[context(budget = 24_000)]
struct Agent {
    #[evictable]
    work: Spans,
}

fn act(window: &mut Window<Agent, MemoryStore>, id: SpanId) -> Result<(), Box<dyn std::error::Error>> {
    let lanes = window.lanes().externalize().wait()?;
    let step = lanes.work.restore(id);
    let Ok(pass) = lanes.admit() else { return Ok(()) };
    step.wait()?;
    let _ = pass.index();
    Ok(())
}

fn main() {}
