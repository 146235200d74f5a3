//@ policy E0080 evaluation panicked: `Agent` has no `#[instruction]`
//@ policy E0080 evaluation panicked: `schema` of `Agent`
//@ policy E0080 evaluation panicked: `limits` of `Agent`
//@ policy E0080 evaluation panicked: `Agent`: budget 24_000
use keepspan::{ContextState, Spans, policy};

policy! {
    House { present(instruction), pinned(constraint), requires(precondition => scope_qualifier), max_budget = 9_000 }
}

#[derive(ContextState)]
#[context(budget = 24_000, policy = House)]
struct Agent {
    #[precondition]
    schema: Spans,
    #[constraint]
    limits: Spans,
}

fn main() {}
