//@ R17 E0631 type mismatch in function arguments
use keepspan::{Action, ContextState, Failure, Granted, Permit, Spans, store::MemoryStore};

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

fn truncate(request: Granted<'_, Truncate>) -> Result<String, Failure> {
    Ok(format!("{} is empty", request.table))
}

fn act(permit: Permit<'_, Mail, MemoryStore>) {
    let _ = permit.run(truncate);
}

fn main() {}
