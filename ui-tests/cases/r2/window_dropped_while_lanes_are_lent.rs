//@ R2 E0505 cannot move out of `window` because it is borrowed
use keepspan::{ContextState, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[evictable]
    work: Spans,
}

fn note(mut window: Window<Agent, MemoryStore>) -> Result<(), Box<dyn std::error::Error>> {
    let lanes = window.lanes();
    drop(window);
    lanes.work.push("late")?;
    Ok(())
}

fn main() {}
