//@ R20 E0277 `Truncate` is destructive and runs on no evidence
//@ R20 E0277 `Truncate` is destructive and runs on no evidence
//@ R20 E0277 `Truncate` is destructive and runs on no evidence
use keepspan::{Action, ContextState, Evidence, Permit, Spans, evidence::Raw, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[scope_qualifier]
    target: Spans,
    #[derived]
    recap: Spans,
}

#[derive(Action)]
#[action(state = Agent, requires(target), destructive)]
struct Truncate {
    table: String,
}

async fn act(
    permit: Permit<'_, Truncate, MemoryStore>,
    evidence: Evidence<Raw>,
) -> Result<(), Box<dyn std::error::Error>> {
    permit.justified_by(&evidence)?.run_async(async |_| Ok("empty")).await?;
    drop(evidence);
    Ok(())
}

fn main() {}
