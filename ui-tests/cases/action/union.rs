//@ action - `Drop` is a union: an action is a struct with named fields, or with none
use keepspan::{Action, ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[precondition]
    schema: Spans,
}

#[derive(Action)]
#[action(state = Agent)]
union Drop {
    table: u8,
}

fn main() {}
