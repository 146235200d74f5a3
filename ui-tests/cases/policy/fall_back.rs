//@ policy E0277 `Agent` is under the policy `House`, which forbids `FixedTemplate`
use keepspan::{ContextState, FixedTemplate, Spans, Window, policy, store::MemoryStore};

policy! {
    House { forbid(FixedTemplate) }
}

#[derive(ContextState)]
#[context(budget = 24_000, policy = House)]
struct Agent {
    #[evictable]
    work: Spans,
    #[derived]
    recap: Spans,
}

fn act(window: &mut Window<Agent, MemoryStore>) -> Result<(), Box<dyn std::error::Error>> {
    let Err(refusal) = window.lanes().externalize().wait()?.admit() else { return Ok(()) };
    let _ = refusal.fall_back(FixedTemplate).wait()?;
    Ok(())
}

fn main() {}
