//@ R20 E0277 `SecondHand` is given its rules by keepspan alone
use keepspan::{Action, ContextState, Spans, action::effect::Destructive, evidence::SecondHand, rule::Justifies};

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

impl Justifies<Truncate, Destructive> for SecondHand {}

fn main() {}
