//@ spans E0308 mismatched types
use keepspan::{ContextState, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[precondition]
    schema: Spans,
}

fn note(window: &mut Window<Agent, MemoryStore>) -> Result<(), Box<dyn std::error::Error>> {
    window.state_mut().schema = "users.id INT".to_owned();
    Ok(())
}

fn main() {}
