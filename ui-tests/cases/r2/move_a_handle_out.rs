//@ R2 E0507 cannot move out of dereference of `Lanes<
use keepspan::{ContextState, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[evictable]
    work: Spans,
}

fn note(window: &mut Window<Agent, MemoryStore>) -> Result<(), Box<dyn std::error::Error>> {
    let lanes = window.lanes();
    let handle = lanes.work;
    let _later = lanes.externalize().wait()?;
    handle.push("late")?;
    Ok(())
}

fn main() {}
