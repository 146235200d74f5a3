//@ R20 E0277 `Ungrounded` is given its rules by keepspan alone
use keepspan::{
    Action, ContextState, Spans,
    action::effect::Destructive,
    rule::{RunsOn, Ungrounded},
};

#[derive(ContextState)]
struct Agent {
    #[scope_qualifier]
    target: Spans,
    #[derived]
    recap: Spans,
}

#[derive(Action)]
#[action(state = Agent, requires(target), destructive)]
struct Truncate {
    table: String,
}

impl RunsOn<Truncate, Destructive> for Ungrounded {}

fn main() {}
