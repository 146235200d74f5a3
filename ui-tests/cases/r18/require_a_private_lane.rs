//@ R18 E0616 field `schema` of struct
use keepspan::{Action, ContextState, Spans};

mod state {
    use super::*;

    #[derive(ContextState)]
    pub struct Agent {
        #[precondition]
        schema: Spans,
    }
}

#[derive(Action)]
#[action(state = state::Agent, requires(schema))]
struct Drop {
    table: String,
}

fn main() {}
