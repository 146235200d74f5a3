//@ derive E0277 `House` is no policy
use keepspan::{ContextState, Spans};

struct House;

#[derive(ContextState)]
#[context(policy = House)]
struct Agent {
    #[evictable]
    work: Spans,
}

fn main() {}
