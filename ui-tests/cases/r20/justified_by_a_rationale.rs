//@ R20 E0277 `Truncate` is destructive, and `Unbacked` evidence cannot justify it
use keepspan::{Action, ContextState, SpanId, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[scope_qualifier]
    target: Spans,
    #[rationale]
    decisions: Spans,
}

#[derive(Action)]
#[action(state = Agent, requires(target), destructive)]
struct Truncate {
    table: String,
}

fn act(
    window: &mut Window<Agent, MemoryStore>,
    request: &Truncate,
    id: SpanId,
) -> Result<(), Box<dyn std::error::Error>> {
    let evidence = window.lanes().decisions.cite(id)?;
    let permit = window.permit(request)?.fresh()?;
    permit.justified_by(&evidence)?.run(|_| Ok("empty"))?;
    Ok(())
}

fn main() {}
