//@ R19 E0277 `()` is no outcome that can be kept: an action gives text, bytes or JSON
use keepspan::{Action, ContextState, Permit, Spans, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[scope_qualifier]
    target: Spans,
    #[derived]
    recap: Spans,
}

#[derive(Action)]
#[action(state = Agent, requires(target))]
struct Mail {
    table: String,
}

fn act(permit: Permit<'_, Mail, MemoryStore>) {
    let _ = permit.run(|_| Ok(()));
}

fn main() {}
