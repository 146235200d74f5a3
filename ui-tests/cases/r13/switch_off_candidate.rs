//@ R13 E0277 `Rationale` is given its rules by keepspan alone
use keepspan::{ContextState, Spans, kind::Rationale, rule::Candidate};

#[derive(ContextState)]
struct Agent {
    #[rationale]
    decisions: Spans,
}

impl Candidate<agent_lanes::decisions> for Rationale {}

fn main() {}
