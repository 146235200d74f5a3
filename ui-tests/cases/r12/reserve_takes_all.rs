//@ R12 E0080 evaluation panicked: `Migration`: reserve 131_072 leaves nothing of the budget 131_072
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
#[context(budget = 131_072, reserve = 131_072)]
struct Migration {
    #[evictable]
    work: Spans,
}

fn main() {}
