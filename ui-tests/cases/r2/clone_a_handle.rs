//@ R2 E0599 no method named `clone` found for struct `Lane<
use keepspan::{ContextState, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[evictable]
    work: Spans,
}

fn note(window: &mut Window<Agent, MemoryStore>) -> Result<(), Box<dyn std::error::Error>> {
    let lanes = window.lanes();
    let handle = lanes.work.clone();
    drop((lanes, handle));
    Ok(())
}

fn main() {}
