//@ R18 E0609 no field `limits` on type
use keepspan::{Action, ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[precondition]
    schema: Spans,
}

#[derive(ContextState)]
struct Billing {
    #[constraint]
    limits: Spans,
}

#[derive(Action)]
#[action(state = Agent, requires(schema, limits))]
struct Drop {
    table: String,
}

fn main() {}
