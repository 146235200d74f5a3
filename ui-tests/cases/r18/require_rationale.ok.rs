//@ R18 E0277 `decisions` holds `Rationale` spans, and no action can depend on those
use keepspan::{Action, ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[precondition]
    schema: Spans,
    #[rationale]
    decisions: Spans,
}

#[derive(Action)]
#[action(state = Agent, requires(schema))]
struct Drop {
    table: String,
}

fn main() {}
