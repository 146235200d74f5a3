//@ R1 E0277 `Open` is given its rules by keepspan alone
use keepspan::{ContextState, Spans, rule::Open, rule::LeavesFrom};

#[derive(ContextState)]
struct Agent {
    #[precondition]
    schema: Spans,
}

impl<K> LeavesFrom<agent_lanes::schema, K> for Open {}

fn main() {}
