//@ R2 E0502 cannot borrow `*window` as immutable because it is also borrowed as mutable
use keepspan::{ContextState, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[evictable]
    work: Spans,
}

fn note(window: &mut Window<Agent, MemoryStore>) -> Result<(), Box<dyn std::error::Error>> {
    let lanes = window.lanes();
    let _ = window.render();
    lanes.work.push("late")?;
    Ok(())
}

fn main() {}
