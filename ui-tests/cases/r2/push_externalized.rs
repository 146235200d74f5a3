//@ R2 E0277 `work` is pushed to while the lanes are externalized
use keepspan::{ContextState, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[evictable]
    work: Spans,
}

fn note(window: &mut Window<Agent, MemoryStore>) -> Result<(), Box<dyn std::error::Error>> {
    let lanes = window.lanes().externalize().wait()?;
    lanes.work.push("late")?;
    Ok(())
}

fn main() {}
