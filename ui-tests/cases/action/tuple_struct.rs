//@ action - `Drop` is a tuple struct: an action is a struct with named fields, or with none
use keepspan::{Action, ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[precondition]
    schema: Spans,
}

#[derive(Action)]
#[action(state = Agent)]
struct Drop(String);

fn main() {}
