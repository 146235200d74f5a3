//@ action E0277 `Instant` has no canonical form, so no signature can be made of it
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
    times: Vec<Option<std::time::Duration>>,
}

fn main() {}
