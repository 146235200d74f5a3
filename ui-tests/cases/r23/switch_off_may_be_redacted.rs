//@ R23 E0277 `Precondition` is given its rules by keepspan alone
use keepspan::{ContextState, Spans, kind::Precondition, rule::MayBeRedacted};

#[derive(ContextState)]
struct Agent {
    #[precondition]
    schema: Spans,
}

impl MayBeRedacted<agent_lanes::schema> for Precondition {}

fn main() {}
