//@ R6 E0277 the trait bound `SummaryText: From<String>` is not satisfied
use keepspan::SummaryText;

fn unchecked(text: String) -> SummaryText {
    text.into()
}

fn main() {}
