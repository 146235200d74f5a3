//@ action - `table` has an unknown key `ignore`, expected one of: `skip`, `with`, `name`
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
