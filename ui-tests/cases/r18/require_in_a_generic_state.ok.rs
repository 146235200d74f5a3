//@ R18 E0277 `work` holds `Evictable` spans, and no action can depend on those
use keepspan::{Action, ContextState, Spans};

#[derive(ContextState)]
struct Agent<T: Default> {
    #[precondition]
    schema: Spans,
    #[evictable]
    work: Spans,
    #[context(skip)]
    turn: T,
}

#[derive(Action)]
#[action(state = Agent<T>, requires(schema))]
struct Drop<T: Default> {
    table: T,
}

fn main() {}
