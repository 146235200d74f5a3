//@ R17 E0308 mismatched types
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

#[derive(Action)]
#[action(state = Agent, requires(target))]
struct Mail {
    table: String,
}

fn run(permit: Permit<'_, Truncate, MemoryStore>) -> u64 {
    permit.attempt()
}

fn act(permit: Permit<'_, Truncate, MemoryStore>) -> u64 {
    run(permit)
}

fn main() {}
