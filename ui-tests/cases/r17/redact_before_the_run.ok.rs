//@ R17 E0499 cannot borrow `*window` as mutable more than once at a time
use keepspan::{Action, ContextState, Mutation, SpanId, Spans, Window, store::MemoryStore};

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

fn act(
    window: &mut Window<Agent, MemoryStore>,
    request: &Mail,
    id: SpanId,
    why: Mutation,
) -> Result<(), Box<dyn std::error::Error>> {
    let permit = window.permit(request)?.fresh()?;
    let _ = (id, why);
    permit.run(|_| Ok("told"))?;
    Ok(())
}

fn main() {}
