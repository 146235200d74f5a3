//@ R12 E0080 evaluation panicked: `Migration`: trigger 20_000 leaves 4_000 tokens of the limit 24_000, and deciding costs 24_600 (index 600 + rationale 24_000): let the decision
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
#[context(budget = 24_000, rationale = 24_000)]
struct Migration {
    #[evictable]
    work: Spans,
}

fn main() {}
