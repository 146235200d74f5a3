//@ R18 E0609 no field `shema` on type
use keepspan::{Action, ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[precondition]
    schema: Spans,
}

#[derive(Action)]
#[action(state = Agent, requires(shema))]
struct Drop {
    table: String,
}

fn main() {}
