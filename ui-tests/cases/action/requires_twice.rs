//@ action - `Drop` has `requires` twice: keep one
use keepspan::{Action, ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[precondition]
    schema: Spans,
}

#[derive(Action)]
#[action(state = Agent, requires(schema), requires(schema))]
struct Drop {
    table: String,
}

fn main() {}
