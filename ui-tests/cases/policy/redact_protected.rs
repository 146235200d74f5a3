//@ policy E0277 `Agent` is under the policy `House`, which forbids `Authority`
use keepspan::{Authority, ContextState, Mutation, SpanId, Spans, Window, policy, store::MemoryStore};

policy! {
    House { forbid(Authority) }
}

#[derive(ContextState)]
#[context(policy = House)]
struct Agent {
    #[evictable]
    work: Spans,
}

fn act(window: &mut Window<Agent, MemoryStore>, id: SpanId, why: Mutation, owner: Authority) -> Result<(), Box<dyn std::error::Error>> {
    window.redact_protected(id, why, owner).wait()?;
    Ok(())
}

fn main() {}
