//@ action - `view` has the name `table` in the signature, as the field `table` has: choose another
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
    #[signature(name = "table")]
    view: String,
}

fn main() {}
