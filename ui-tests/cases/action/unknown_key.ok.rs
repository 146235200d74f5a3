//@ action - `Drop` has an unknown key `destroys`, expected one of: `state`, `requires`, `destructive`, `consent`, `name`, `check`, `describe`, `crate`
use keepspan::{Action, ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[precondition]
    schema: Spans,
}

#[derive(Action)]
#[action(state = Agent, destructive)]
struct Drop {
    table: String,
}

fn main() {}
