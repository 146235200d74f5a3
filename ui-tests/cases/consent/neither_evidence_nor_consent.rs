//@ R20 E0277 `Mail` is destructive and runs on no evidence
//@ consent E0277 `Mail` runs only with a person's consent
use keepspan::{Action, ContextState, Permit, Spans, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[scope_qualifier]
    target: Spans,
    #[derived]
    recap: Spans,
}

#[derive(Action)]
#[action(state = Agent, requires(target), destructive, consent)]
struct Mail {
    table: String,
}

fn act(permit: Permit<'_, Mail, MemoryStore>) -> Result<(), Box<dyn std::error::Error>> {
    permit.run(|_| Ok("told"))?;
    Ok(())
}

fn main() {}
