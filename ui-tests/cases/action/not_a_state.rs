//@ action E0277 
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
