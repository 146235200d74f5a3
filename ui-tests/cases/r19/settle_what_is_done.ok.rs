//@ R19 E0599 no method named `settle` found for struct `Withheld<
use keepspan::{Action, ContextState, Permission, Spans, Window, action::Settlement, store::MemoryStore};

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

fn act(
    window: &mut Window<Agent, MemoryStore>,
    request: &Mail,
    found: Settlement,
) -> Result<(), Box<dyn std::error::Error>> {
    if let Permission::Uncertain(attempt) = window.permit(request)? {
        attempt.settle(found).wait()?;
    }
    Ok(())
}

fn main() {}
