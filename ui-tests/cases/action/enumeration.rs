//@ action - `Drop` is an enum: an action is a struct with named fields, or with none
use keepspan::{Action, ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[precondition]
    schema: Spans,
}

#[derive(Action)]
#[action(state = Agent)]
enum Drop {
    Table(String),
}

fn main() {}
