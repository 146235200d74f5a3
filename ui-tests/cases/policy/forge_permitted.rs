//@ policy E0277 `Strict` forbids `Escalation`, or a policy that it stands under does: `Permitted` is written by keepspan alone
use keepspan::{ContextState, Escalation, Spans, policy, policy::Permitted};

policy! {
    House { forbid(Escalation) }
}

policy! {
    Strict: House { forbid(Escalation) }
}

#[derive(ContextState)]
#[context(policy = Strict)]
struct Agent {
    #[derived]
    recap: Spans,
}

// The field and the struct are the user's own, so nothing else keeps them from it.
impl Permitted<Escalation, agent_lanes::recap, Agent> for Strict {}

fn main() {}
