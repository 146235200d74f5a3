//@ R18 E0277 `recap` holds `Derived` spans, and no action can depend on those
use keepspan::{Action, ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[precondition]
    schema: Spans,
    #[derived]
    recap: Spans,
}

#[derive(Action)]
#[action(state = Agent, requires(schema))]
struct Drop {
    table: String,
}

fn main() {}
