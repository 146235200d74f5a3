//@ action E0277 `String` declares no lanes, so there is no window of it
use keepspan::{Action, ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[precondition]
    schema: Spans,
}

#[derive(Action)]
#[action(state = String)]
struct Drop {
    table: String,
}

fn main() {}
