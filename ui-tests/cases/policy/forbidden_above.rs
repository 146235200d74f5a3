//@ policy E0277 `recap` is under the policy `Strict`, which forbids `Escalation`
use keepspan::{ContextState, Escalation, SpanId, Spans, SummaryText, Window, policy, store::MemoryStore};

policy! {
    House { forbid(Escalation) }
}

policy! {
    Strict: House { max_budget = 50_000 }
}

#[derive(ContextState)]
#[context(policy = Strict)]
struct Agent {
    #[derived]
    recap: Spans,
}

fn act(window: &mut Window<Agent, MemoryStore>, id: SpanId, text: SummaryText, why: Escalation) -> Result<(), Box<dyn std::error::Error>> {
    let lanes = window.lanes().externalize().wait()?;
    lanes.recap.escalate(id, text, why).wait()?;
    Ok(())
}

fn main() {}
