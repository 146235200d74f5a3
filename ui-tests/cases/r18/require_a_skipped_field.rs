//@ R18 E0609 no field `turn` on type
use keepspan::{Action, ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[precondition]
    schema: Spans,
    #[context(skip)]
    turn: u32,
}

#[derive(Action)]
#[action(state = Agent, requires(turn))]
struct Drop {
    table: String,
}

fn main() {}
