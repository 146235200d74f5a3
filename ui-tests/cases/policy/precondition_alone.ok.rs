//@ policy E0080 evaluation panicked: `schema` of `Agent` is a `#[precondition]`, which the policy `House` allows only beside a `#[scope_qualifier]` field
use keepspan::{ContextState, Spans, policy};

policy! {
    House { requires(precondition => scope_qualifier) }
}

#[derive(ContextState)]
#[context(policy = House)]
struct Agent {
    #[precondition]
    schema: Spans,
    #[scope_qualifier]
    target: Spans,
}

fn main() {}
