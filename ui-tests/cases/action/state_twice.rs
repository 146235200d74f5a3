//@ action - `Drop` has `state` twice: keep one
use keepspan::{Action, ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[precondition]
    schema: Spans,
}

#[derive(Action)]
#[action(state = Agent, state = Agent)]
struct Drop {
    table: String,
}

fn main() {}
