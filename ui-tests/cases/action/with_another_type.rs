//@ action E0308 mismatched types
use keepspan::{Action, ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[precondition]
    schema: Spans,
}

fn lower_case(text: &String) -> String {
    text.to_lowercase()
}

#[derive(Action)]
#[action(state = Agent)]
struct Drop {
    #[signature(with = lower_case)]
    tables: Vec<String>,
}

fn main() {}
