//@ R1 E0277 `Open` is given its rules by keepspan alone
use keepspan::{ContextState, Spans, rule::Open, rule::SummarizedFrom};

#[derive(ContextState)]
struct Agent {
    #[precondition]
    schema: Spans,
}

impl<K> SummarizedFrom<agent_lanes::schema, K> for Open {}

fn main() {}
