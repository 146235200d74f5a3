//@ R17 E0451 fields `
use keepspan::{Action, ContextState, Permit, Spans, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[scope_qualifier]
    target: Spans,
    #[derived]
    recap: Spans,
}

#[derive(Action)]
#[action(state = Agent, requires(target), destructive)]
struct Truncate {
    table: String,
}

fn forge(permit: Permit<'_, Truncate, MemoryStore>) -> Permit<'_, Truncate, MemoryStore> {
    Permit { ..permit }
}

fn main() {}
