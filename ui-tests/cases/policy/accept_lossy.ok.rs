//@ policy E0277 `Mail` is under the policy `House`, which forbids `AcceptLossy`
use keepspan::{Action, ContextState, Permission, Spans, Window, action::AcceptLossy, policy, store::MemoryStore};

policy! {
    House { forbid(Override) }
}

#[derive(ContextState)]
#[context(policy = House)]
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
    why: AcceptLossy,
) -> Result<(), Box<dyn std::error::Error>> {
    if let Permission::Denied(denied) = window.permit(request)? {
        let permit = denied.accept_lossy(why).map_err(|denied| denied.into_inner())?;
        permit.run(|_| Ok("told"))?;
    }
    Ok(())
}

fn main() {}
