//@ action E0277 `SystemTime` has no canonical form, so no signature can be made of it
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
    #[signature(skip)] at: std::time::SystemTime,
}

fn main() {}
