//@ R2 E0308 mismatched types
use keepspan::{
    Budget, ContextState, Field, Lane, LaneSpec, Spans, __private::Lender,
    kind::Evictable,
    policy::{Governed, Unrestricted},
    rule::Externalized,
};

enum Work {}

impl Field for Work {
    type Kind = Evictable;
    type State = Agent;
    const AT: (u16, &'static str) = (0, "work");
}

struct Agent {
    work: Spans,
}

struct Handles<'w, St> {
    work: Lane<'w, St, Work, Externalized>,
}

impl Governed for Agent {
    type Policy = Unrestricted;
}

// Even by hand, through what only the derive should use, a handle comes in the state that was lent.
impl ContextState for Agent {
    type Lanes<'w, St: 'w, S: 'w> = Handles<'w, St>;
    const NAME: &'static str = "Agent";
    const LANES: &'static [LaneSpec] = &[LaneSpec::of::<Work>(&[], &[], false, false)];
    const BUDGET: Option<Budget> = None;

    fn lend<'w, St, S>(lender: Lender<'w, St, S>) -> Handles<'w, St> {
        Handles { work: lender.lane() }
    }

    fn declare(spans: fn() -> Spans) -> Self {
        Agent { work: spans() }
    }
}

fn main() {}
