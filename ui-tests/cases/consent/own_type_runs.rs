//@ consent E0277 `Silence` is given its rules by keepspan alone
use keepspan::{Action, ContextState, Spans, action::consent::Needed, rule::RunsWith};

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

struct Silence;

impl RunsWith<Mail, Needed> for Silence {}

fn main() {}
