//@ R12 - `Migration` has `trigger` and no `budget`, of which it is a part
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
#[context(trigger = 20_000)]
struct Migration {
    #[evictable]
    work: Spans,
}

fn main() {}
