//@ R19 E0599 no method named `run` found for struct `Withheld<
use keepspan::{Action, ContextState, Permission, Spans, Window, store::MemoryStore};

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

fn act(window: &mut Window<Agent, MemoryStore>, request: &Mail) -> Result<(), Box<dyn std::error::Error>> {
    if let Permission::Fresh(permit) = window.permit(request)? {
        permit.run(|_| Ok("told"))?;
    }
    Ok(())
}

fn main() {}
