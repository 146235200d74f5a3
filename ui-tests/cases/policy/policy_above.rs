//@ policy E0080 evaluation panicked: `limits` of `Agent` is a `#[constraint]`, which the policy `House` keeps in the window
use keepspan::{ContextState, Spans, policy};

policy! {
    House { pinned(constraint) }
}

policy! {
    Strict: House { max_budget = 50_000 }
}

#[derive(ContextState)]
#[context(policy = Strict)]
struct Agent {
    #[constraint]
    limits: Spans,
}

fn main() {}
