//@ R17 E0521 borrowed data escapes outside of closure
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
    let mut kept = None;
    let _ = permit.run(|granted| {
        kept = Some(granted.table.clone());
        Ok("told")
    });
    drop(kept);
}

fn main() {}
