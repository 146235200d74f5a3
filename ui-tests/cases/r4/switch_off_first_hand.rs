//@ R4 E0277 `Derived` is given its rules by keepspan alone
use keepspan::{ContextState, Spans, kind::Derived, rule::FirstHand};

#[derive(ContextState)]
struct Agent {
    #[derived]
    recap: Spans,
}

impl FirstHand<agent_lanes::recap> for Derived {}

fn main() {}
