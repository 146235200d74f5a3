//@ R18 E0277 `rules` holds `Instruction` spans, and no action can depend on those
use keepspan::{Action, ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[precondition]
    schema: Spans,
    #[instruction]
    rules: Spans,
}

#[derive(Action)]
#[action(state = Agent, requires(schema))]
struct Drop {
    table: String,
}

fn main() {}
