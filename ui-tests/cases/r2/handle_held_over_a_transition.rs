//@ R2 E0505 cannot move out of `lanes` because it is borrowed
use keepspan::{ContextState, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[evictable]
    work: Spans,
}

fn note(window: &mut Window<Agent, MemoryStore>) -> Result<(), Box<dyn std::error::Error>> {
    let lanes = window.lanes();
    let open = &lanes.work;
    let _externalized = lanes.externalize().wait()?;
    open.push("late")?;
    Ok(())
}

fn main() {}
