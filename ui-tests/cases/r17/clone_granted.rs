//@ R17 E0599 no method named `clone` found for struct `Granted<'_, Truncate>`
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

fn twice(granted: Granted<'_, Truncate>) -> Result<String, Failure> {
    truncate(granted.clone())?;
    truncate(granted)
}

fn main() {}
