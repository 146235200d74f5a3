//@ R17 E0451 fields `
use keepspan::{Action, ContextState, Failure, Granted, Spans};

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

fn truncate(request: Granted<'_, Truncate>) -> Result<String, Failure> {
    Ok(format!("{} is empty", request.table))
}

fn act(request: &Truncate) -> Result<String, Failure> {
    truncate(Granted { action: request, signature: request.signature(), attempt: 1 })
}

fn main() {}
