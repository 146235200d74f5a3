//@ R2 E0382 borrow of moved value: `lanes`
use keepspan::{ContextState, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[evictable]
    work: Spans,
}

fn note(window: &mut Window<Agent, MemoryStore>) -> Result<(), Box<dyn std::error::Error>> {
    let lanes = window.lanes();
    let _externalized = lanes.externalize().wait()?;
    lanes.work.push("late")?;
    Ok(())
}

fn main() {}
