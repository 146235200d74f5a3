//@ derive - `recap`: `#[derived]` is made by summarize and takes no routing
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[derived(otherwise)]
    recap: Spans,
}

fn main() {}
