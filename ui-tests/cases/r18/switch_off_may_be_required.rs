//@ R18 E0277 `Evictable` is given its rules by keepspan alone
use keepspan::{ContextState, Spans, kind::Evictable, rule::MayBeRequired};

#[derive(ContextState)]
struct Agent {
    #[evictable]
    work: Spans,
}

impl MayBeRequired<agent_lanes::work> for Evictable {}

fn main() {}
