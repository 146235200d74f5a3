//@ R17 E0499 cannot borrow `*window` as mutable more than once at a time
use keepspan::{Action, ContextState, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[scope_qualifier]
    target: Spans,
    #[evictable]
    work: Spans,
    #[derived]
    recap: Spans,
}

#[derive(Action)]
#[action(state = Agent, requires(target))]
struct Mail {
    table: String,
}

fn act(window: &mut Window<Agent, MemoryStore>, request: &Mail) -> Result<(), Box<dyn std::error::Error>> {
    let permit = window.permit(request)?.fresh()?;
    let _ = permit.attempt();
    permit.run(|_| Ok("told"))?;
    Ok(())
}

fn main() {}
