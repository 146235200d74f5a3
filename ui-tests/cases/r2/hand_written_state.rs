//@ R2 E0308 mismatched types
use keepspan::{
    __private::{Field, LaneSpec, Lender},
    ContextState, Lane, Spans,
    kind::Evictable,
    rule::Externalized,
};

enum Work {}

impl Field for Work {
    type Kind = Evictable;
    const INDEX: u16 = 0;
    const NAME: &'static str = "work";
}

struct Agent {
    work: Spans,
}

struct Handles<'w, St> {
    work: Lane<'w, St, Work, Externalized>,
}

// Even by hand, through what only the derive should use, a handle comes in the state that was lent.
impl ContextState for Agent {
    type Lanes<'w, St: 'w, S: 'w> = Handles<'w, St>;
    const NAME: &'static str = "Agent";
    const LANES: &'static [LaneSpec] = &[LaneSpec::of::<Work>(&[], &[], false, false)];
    const BUDGET: Option<u64> = None;

    fn lend<'w, St, S>(lender: Lender<'w, St, S>) -> Handles<'w, St> {
        Handles { work: lender.lane() }
    }

    fn declare(spans: fn() -> Spans) -> Self {
        Agent { work: spans() }
    }
}

fn main() {}
