//@ R5 E0277 `Evictable` is given its rules by keepspan alone
use keepspan::{ContextState, Spans, kind::Evictable, rule::HoldsSummaries};

#[derive(ContextState)]
struct Agent {
    #[evictable]
    work: Spans,
}

impl HoldsSummaries<agent_lanes::work> for Evictable {}

fn main() {}
