//@ policy E0277 `Mail` is under the policy `House`, which forbids `Override`
use keepspan::{Action, ContextState, Override, Permission, Spans, Window, policy, store::MemoryStore};

policy! {
    House { forbid(Mutation) }
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
    why: Override,
) -> Result<(), Box<dyn std::error::Error>> {
    if let Permission::Done(done) = window.permit(request)? {
        let permit = done.repeat(why).map_err(|denied| denied.into_inner())?;
        permit.run(|_| Ok("told"))?;
    }
    Ok(())
}

fn main() {}
