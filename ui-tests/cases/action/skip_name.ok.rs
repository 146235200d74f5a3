//@ action - `nonce` is skipped and in no signature: remove `name`, or `skip`
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
    #[signature(skip)]
    nonce: String,
}

fn main() {}
