//@ R20 E0277 `Derived` is given its rules by keepspan alone
use keepspan::{ContextState, Spans, kind::Derived, rule::MayConsent};

#[derive(ContextState)]
struct Agent {
    #[scope_qualifier]
    target: Spans,
    #[derived]
    recap: Spans,
}

impl MayConsent<agent_lanes::recap> for Derived {}

fn main() {}
