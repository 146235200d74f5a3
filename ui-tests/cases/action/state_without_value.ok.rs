//@ action - `Drop`: `state` takes a value, as `state = Migration`
use keepspan::{Action, ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[precondition]
    schema: Spans,
}

#[derive(Action)]
#[action(state = Agent)]
struct Drop {
    table: String,
}

fn main() {}
