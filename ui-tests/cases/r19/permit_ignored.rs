//@ R19 - unused `Permit` that must be used
#![deny(unused_must_use)]
use keepspan::{Action, ContextState, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[scope_qualifier]
    target: Spans,
    #[derived]
    recap: Spans,
}

#[derive(Action)]
#[action(state = Agent, requires(target))]
struct Mail {
    table: String,
}

fn act(window: &mut Window<Agent, MemoryStore>, request: &Mail) -> Result<(), Box<dyn std::error::Error>> {
    window.permit(request)?.fresh()?;
    Ok(())
}

fn main() {}
