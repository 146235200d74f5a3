//@ R6 E0423 cannot initialize a tuple struct which contains private fields
use keepspan::SummaryText;

fn unchecked() -> SummaryText {
    SummaryText(String::new())
}

fn main() {}
