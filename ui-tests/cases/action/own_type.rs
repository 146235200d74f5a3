//@ action E0277 `Table` has no canonical form, so no signature can be made of it
use keepspan::{Action, Canonical, ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[precondition]
    schema: Spans,
}

#[derive(Clone)]
struct Table(String);

#[derive(Action)]
#[action(state = Agent)]
struct Drop {
    table: Table,
}

fn main() {}
