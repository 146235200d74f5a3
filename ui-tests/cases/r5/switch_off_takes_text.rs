//@ R5 E0277 `Derived` is given its rules by keepspan alone
use keepspan::{ContextState, Spans, kind::Derived, rule::TakesText};

#[derive(ContextState)]
struct Agent {
    #[derived]
    recap: Spans,
}

impl TakesText<agent_lanes::recap> for Derived {}

fn main() {}
