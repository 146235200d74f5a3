//@ R9 E0277 `Open` is given its rules by keepspan alone
use keepspan::{ContextState, rule::{Open, PrunesFrom}, Spans};

#[derive(ContextState)]
#[context(budget = 24_000)]
struct Agent {
    #[precondition]
    schema: Spans,
    #[evictable]
    work: Spans,
}

impl PrunesFrom<Agent> for Open {}

fn main() {}
