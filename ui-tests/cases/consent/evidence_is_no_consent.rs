//@ consent E0277 `Mail` runs only with a person's consent
use keepspan::{Action, ContextState, Evidence, Permit, Spans, evidence::Raw, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[scope_qualifier]
    target: Spans,
    #[derived]
    recap: Spans,
}

#[derive(Action)]
#[action(state = Agent, requires(target), consent)]
struct Mail {
    table: String,
}

fn act(permit: Permit<'_, Mail, MemoryStore>, evidence: Evidence<Raw>) -> Result<(), Box<dyn std::error::Error>> {
    permit.justified_by(&evidence)?.run(|_| Ok("told"))?;
    Ok(())
}

fn main() {}
