//@ policy E0080 evaluation panicked: `Agent`: deciding costs 2_400 (index 2_000 + rationale 400), above the 2_000 that the policy `House` allows
use keepspan::{ContextState, Spans, policy};

policy! {
    House { max_decision = 2_000 }
}

#[derive(ContextState)]
#[context(budget = 24_000, index = 2_000, policy = House)]
struct Agent {
    #[precondition]
    schema: Spans,
}

fn main() {}
