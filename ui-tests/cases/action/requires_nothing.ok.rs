//@ action - `Drop`: `requires` takes a list, as `requires(schema, target)`
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
