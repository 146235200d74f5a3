//@ R17 E0505 cannot move out of `window` because it is borrowed
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

fn act(mut window: Window<Agent, MemoryStore>, request: &Mail) -> Result<(), Box<dyn std::error::Error>> {
    let permit = window.permit(request)?.fresh()?;
    window.close().map_err(|error| error.to_string())?;
    permit.run(|_| Ok("told"))?;
    Ok(())
}

fn main() {}
