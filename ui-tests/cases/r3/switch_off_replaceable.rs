//@ R3 E0277 `Precondition` is given its rules by keepspan alone
use keepspan::{ContextState, Spans, kind::Precondition, rule::Replaceable};

#[derive(ContextState)]
struct Agent {
    #[precondition]
    schema: Spans,
}

impl Replaceable<agent_lanes::schema> for Precondition {}

fn main() {}
