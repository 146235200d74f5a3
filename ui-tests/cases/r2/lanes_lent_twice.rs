//@ R2 E0499 cannot borrow `*window` as mutable more than once at a time
use keepspan::{ContextState, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[evictable]
    work: Spans,
}

fn note(window: &mut Window<Agent, MemoryStore>) -> Result<(), Box<dyn std::error::Error>> {
    let one = window.lanes();
    let two = window.lanes().externalize().wait()?;
    one.work.push("late")?;
    drop(two);
    Ok(())
}

fn main() {}
