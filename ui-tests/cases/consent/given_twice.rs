//@ consent E0382 use of moved value: `consent`
use keepspan::{Action, Consent, ContextState, Permit, Spans, store::MemoryStore};

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

fn act(
    one: Permit<'_, Mail, MemoryStore>,
    other: Permit<'_, Mail, MemoryStore>,
    consent: Consent,
) -> Result<(), Box<dyn std::error::Error>> {
    one.consented_by(consent)?.run(|_| Ok("told"))?;
    other.consented_by(consent)?.run(|_| Ok("told"))?;
    Ok(())
}

fn main() {}
