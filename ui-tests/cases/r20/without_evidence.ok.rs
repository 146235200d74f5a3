//@ R20 E0277 `Truncate` is destructive and runs on no evidence
use keepspan::{Action, ContextState, Permit, Spans, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[scope_qualifier]
    target: Spans,
    #[derived]
    recap: Spans,
}

#[derive(Action)]
#[action(state = Agent, requires(target))]
struct Truncate {
    table: String,
}

fn act(permit: Permit<'_, Truncate, MemoryStore>) -> Result<(), Box<dyn std::error::Error>> {
    permit.run(|_| Ok("empty"))?;
    Ok(())
}

fn main() {}
