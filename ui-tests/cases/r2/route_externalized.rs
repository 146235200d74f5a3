//@ R2 E0277 `Agent` is pushed to while the lanes are externalized
use keepspan::{ContextState, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[evictable(otherwise)]
    work: Spans,
}

fn note(window: &mut Window<Agent, MemoryStore>) -> Result<(), Box<dyn std::error::Error>> {
    let lanes = window.lanes().externalize().wait()?;
    lanes.route("late")?;
    Ok(())
}

fn main() {}
