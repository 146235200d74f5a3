//@ action - `Drop` names no state: add `#[action(state = Migration)]`
use keepspan::{Action, ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[precondition]
    schema: Spans,
}

#[derive(Action)]
#[action(state = Agent, requires(schema))]
struct Drop {
    table: String,
}

fn main() {}
