//@ consent E0277 `Unconsented` is given its rules by keepspan alone
use keepspan::{
    Action, ContextState, Spans,
    action::consent::Needed,
    rule::{RunsWith, Unconsented},
};

#[derive(ContextState)]
struct Agent {
    #[scope_qualifier]
    target: Spans,
    #[derived]
    recap: Spans,
}

#[derive(Action)]
#[action(state = Agent, requires(target), consent)]
struct Mail {
    table: String,
}

impl RunsWith<Mail, Needed> for Unconsented {}

fn main() {}
