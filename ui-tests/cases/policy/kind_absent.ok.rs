//@ policy E0080 evaluation panicked: `Agent` has no `#[instruction]` field, and the policy `House` asks for one
use keepspan::{ContextState, Spans, policy};

policy! {
    House { present(instruction) }
}

#[derive(ContextState)]
#[context(policy = House)]
struct Agent {
    #[precondition]
    schema: Spans,
    #[instruction]
    rules: Spans,
}

fn main() {}
