//@ R17 E0423 cannot initialize a tuple struct which contains private fields
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
    truncate(Granted(request))
}

fn main() {}
