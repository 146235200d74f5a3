//@ R20 E0277 `Sure` is given its rules by keepspan alone
use keepspan::{Action, ContextState, Spans, action::effect::Destructive, rule::Justifies};

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

struct Sure;

impl Justifies<Truncate, Destructive> for Sure {}

fn main() {}
