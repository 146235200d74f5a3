//@ derive - `decisions`: `#[rationale]` is filled by pruning itself and takes no routing
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[rationale]
    decisions: Spans,
    #[evictable(otherwise)]
    work: Spans,
}

fn main() {}
