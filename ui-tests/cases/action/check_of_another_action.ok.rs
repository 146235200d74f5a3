//@ action E0308 mismatched types
use keepspan::{Action, ContextState, Spans, action::Held};

#[derive(ContextState)]
struct Agent {
    #[precondition]
    schema: Spans,
}

fn agrees(request: &Create, held: &Held<'_>) -> Result<(), String> {
    held.texts("schema").any(|text| text == request.table).then_some(()).ok_or_else(|| request.table.clone())
}

#[derive(Action)]
#[action(state = Agent, requires(schema))]
struct Create {
    table: String,
}

#[derive(Action)]
#[action(state = Agent, requires(schema))]
struct Drop {
    table: String,
}

fn main() {}
