//@ R9 E0382 use of moved value: `draft`
use keepspan::{ContextState, Draft, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
#[context(budget = 4_000)]
struct Agent {
    #[evictable]
    work: Spans,
}

fn prune(window: &mut Window<Agent, MemoryStore>, draft: Draft<Agent>) -> Result<(), Box<dyn std::error::Error>> {
    drop(window.lanes().externalize().wait()?.rebase(draft)?);
    drop(window.lanes().externalize().wait()?.rebase(draft)?);
    Ok(())
}

fn main() {}
