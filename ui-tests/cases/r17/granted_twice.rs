//@ R17 E0382 use of moved value: `granted`
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
    truncate(granted)?;
    truncate(granted)
}

fn main() {}
