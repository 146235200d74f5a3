//@ policy E0080 evaluation panicked: `Agent`: budget 200_000 is above the 100_000 that the policy `House` allows
use keepspan::{ContextState, Spans, policy};

policy! {
    House { max_budget = 100_000 }
}

#[derive(ContextState)]
#[context(budget = 200_000, policy = House)]
struct Agent {
    #[precondition]
    schema: Spans,
}

fn main() {}
