//@ consent E0308 mismatched types
use keepspan::{Action, ContextState, Permit, Spans, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[scope_qualifier]
    target: Spans,
    #[derived]
    recap: Spans,
}

#[derive(Action)]
#[action(state = Agent, requires(target), consent)]
struct Mail {
    table: String,
}

fn act(permit: Permit<'_, Mail, MemoryStore>) -> Result<(), Box<dyn std::error::Error>> {
    permit.consented_by("the user approved")?;
    Ok(())
}

fn main() {}
