//@ keep E0277 `Instruction` is given its rules by keepspan alone
use keepspan::{ContextState, Spans, kind::Instruction, rule::MayLeave};

#[derive(ContextState)]
struct Agent {
    #[instruction]
    rules: Spans,
}

impl MayLeave<agent_lanes::rules> for Instruction {}

fn main() {}
