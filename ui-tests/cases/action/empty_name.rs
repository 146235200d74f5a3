//@ action - `Drop`: `name` takes a text, as `name = "alter_column"`
use keepspan::{Action, ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[precondition]
    schema: Spans,
}

#[derive(Action)]
#[action(state = Agent, name = "")]
struct Drop {
    table: String,
}

fn main() {}
