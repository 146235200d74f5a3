//@ R17 E0499 cannot borrow `*window` as mutable more than once at a time
use keepspan::{ContextState, SpanId, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[scope_qualifier]
    target: Spans,
    #[derived]
    recap: Spans,
}

fn act(window: &mut Window<Agent, MemoryStore>, id: SpanId) -> Result<String, Box<dyn std::error::Error>> {
    let complete = window.assert_complete("production was never touched", [id])?;
    let _ = complete.spans();
    Ok(complete.claim().to_owned())
}

fn main() {}
