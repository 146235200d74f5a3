//@ action - `table`: `#[action(..)]` stands on the struct; a field takes `#[signature(..)]`
use keepspan::{Action, ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[precondition]
    schema: Spans,
}

#[derive(Action)]
#[action(state = Agent)]
struct Drop {
    #[signature(skip)]
    table: String,
}

fn main() {}
