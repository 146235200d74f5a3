//@ consent E0277 `Mail` runs only with a person's consent
//@ consent E0277 `Mail` runs only with a person's consent
//@ consent E0277 `Mail` runs only with a person's consent
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

async fn act(permit: Permit<'_, Mail, MemoryStore>, consent: Consent) -> Result<(), Box<dyn std::error::Error>> {
    permit.run_async(async |_| Ok("told")).await?;
    drop(consent);
    Ok(())
}

fn main() {}
