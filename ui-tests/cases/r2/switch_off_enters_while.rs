//@ R2 E0277 `Externalized` is given its rules by keepspan alone
use keepspan::{ContextState, Spans, rule::Externalized, rule::EntersWhile};

#[derive(ContextState)]
struct Agent {
    #[evictable]
    work: Spans,
}

impl EntersWhile<agent_lanes::work> for Externalized {}

fn main() {}
