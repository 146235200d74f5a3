//@ R9 E0499 cannot borrow `*window` as mutable more than once at a time
use keepspan::{ContextState, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
#[context(budget = 24_000)]
struct Agent {
    #[precondition]
    schema: Spans,
    #[evictable]
    work: Spans,
}

fn act(window: &mut Window<Agent, MemoryStore>) -> Result<(), Box<dyn std::error::Error>> {
    let Ok(pass) = window.lanes().externalize().wait()?.admit() else { return Ok(()) };
    window.lanes().work.push("read")?;
    let _ = pass.index();
    Ok(())
}

fn main() {}
