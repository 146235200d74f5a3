//@ R2 E0277 `schema` is pushed to while the lanes are externalized
use keepspan::{ContextState, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[precondition]
    schema: Spans,
}

fn note(window: &mut Window<Agent, MemoryStore>) -> Result<(), Box<dyn std::error::Error>> {
    let lanes = window.lanes();
    lanes.schema.push("late")?;
    Ok(())
}

fn main() {}
