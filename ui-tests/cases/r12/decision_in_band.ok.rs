//@ R12 E0080 evaluation panicked: `Migration`: trigger 23_500 leaves 500 tokens of the limit 24_000, and deciding costs 1_000 (index 600 + rationale 400): lower the trigger to 23_000
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
#[context(budget = 24_000, trigger = 23_000, index = 600, rationale = 400)]
struct Migration {
    #[evictable]
    work: Spans,
}

fn main() {}
