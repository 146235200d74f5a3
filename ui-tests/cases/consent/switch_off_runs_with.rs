//@ consent E0277 `keepspan::rule::Unasked` is given its rules by keepspan alone
use keepspan::{
    Action, ContextState, Spans,
    action::consent::Needed,
    rule::{RunsWith, Unasked},
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

impl RunsWith<Mail, Needed> for Unasked {}

fn main() {}
