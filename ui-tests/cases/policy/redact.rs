//@ policy E0277 `work` is under the policy `House`, which forbids `Mutation`
use keepspan::{ContextState, Mutation, SpanId, Spans, Window, policy, store::MemoryStore};

policy! {
    House { forbid(Mutation) }
}

#[derive(ContextState)]
#[context(policy = House)]
struct Agent {
    #[evictable]
    work: Spans,
}

fn act(window: &mut Window<Agent, MemoryStore>, id: SpanId, why: Mutation) -> Result<(), Box<dyn std::error::Error>> {
    window.lanes().work.redact(id, why).wait()?;
    Ok(())
}

fn main() {}
