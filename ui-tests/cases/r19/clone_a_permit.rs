//@ R19 E0599 no method named `clone` found for struct `Permit<'w, A, St, J, K>`
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

fn act(permit: Permit<'_, Mail, MemoryStore>) -> Result<(), Box<dyn std::error::Error>> {
    permit.clone().run(|_| Ok("told"))?;
    permit.run(|_| Ok("told"))?;
    Ok(())
}

fn main() {}
