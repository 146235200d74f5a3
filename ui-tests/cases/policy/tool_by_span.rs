//@ policy E0277 `Agent` is under the policy `House`, which forbids `Dynamic`
use keepspan::{ContextState, Spans, Window, policy, store::MemoryStore, tool::{Anthropic, Dynamic}};

policy! {
    House { forbid(Dynamic) }
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
    let Ok(pass) = window.lanes().externalize().wait()?.admit() else { return Ok(()) };
    let _ = pass.tool(Anthropic, Dynamic);
    Ok(())
}

fn main() {}
