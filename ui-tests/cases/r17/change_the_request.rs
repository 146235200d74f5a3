//@ R17 E0506 cannot assign to `request.table` because it is borrowed
use keepspan::{Action, ContextState, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[scope_qualifier]
    target: Spans,
    #[derived]
    recap: Spans,
}

#[derive(Action)]
#[action(state = Agent, requires(target))]
struct Mail {
    table: String,
}

fn act(window: &mut Window<Agent, MemoryStore>, request: &mut Mail) -> Result<(), Box<dyn std::error::Error>> {
    let permit = window.permit(request)?.fresh()?;
    request.table = "another".to_owned();
    permit.run(|_| Ok("told"))?;
    Ok(())
}

fn main() {}
