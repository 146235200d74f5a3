//@ action E0119 conflicting implementations of trait
use keepspan::{Action, Canonical, ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[precondition]
    schema: Spans,
}

#[derive(Action, Canonical)]
#[action(state = Agent)]
struct Drop {
    table: String,
}

fn main() {}
