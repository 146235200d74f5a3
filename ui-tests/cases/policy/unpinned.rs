//@ policy E0080 evaluation panicked: `limits` of `Agent` is a `#[constraint]`, which the policy `House` keeps in the window
use keepspan::{ContextState, Spans, policy};

policy! {
    House { pinned(constraint) }
}

#[derive(ContextState)]
#[context(policy = House)]
struct Agent {
    #[constraint]
    limits: Spans,
}

fn main() {}
