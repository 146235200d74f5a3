//@ R18 E0277 `work` holds `Evictable` spans, and no action can depend on those
use keepspan::{Action, ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[precondition]
    schema: Spans,
    #[evictable]
    work: Spans,
}

#[derive(Action)]
#[action(state = Agent, requires(schema, work), destructive, consent)]
struct Drop {
    table: String,
}

fn main() {}
