//@ policy E0080 evaluation panicked: `Strict`: max_budget 200_000 is above the 100_000 of `House`
use keepspan::{
    ContextState, Spans, policy,
    policy::{Policy, Terms},
};

policy! {
    House { max_budget = 100_000 }
}

enum Strict {}

impl Policy for Strict {
    type Under = House;
    const TERMS: Terms = Terms::of("Strict").max_budget(200_000);
}

#[derive(ContextState)]
#[context(policy = Strict)]
struct Agent {
    #[evictable]
    work: Spans,
}

fn main() {}
