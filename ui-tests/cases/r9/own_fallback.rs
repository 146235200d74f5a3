//@ R9 E0046 not all trait items implemented
//@ R9 E0277 the trait bound `Everything: Act`
//@ R9 E0277 the trait bound `Everything: keepspan::window::prune::fallback::sealed::Sealed`
use keepspan::{ContextState, Fallback, Spans};

#[derive(ContextState)]
#[context(budget = 24_000)]
struct Agent {
    #[precondition]
    schema: Spans,
    #[evictable]
    work: Spans,
}

struct Everything;
impl Fallback for Everything {
    const NAME: &'static str = "everything";
}

fn main() {}
