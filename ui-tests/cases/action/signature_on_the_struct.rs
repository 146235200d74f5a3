//@ action - `Drop`: `#[signature(..)]` stands on a field; an action takes `#[action(..)]`
use keepspan::{Action, ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[precondition]
    schema: Spans,
}

#[derive(Action)]
#[action(state = Agent)]
#[signature(skip)]
struct Drop {
    table: String,
}

fn main() {}
