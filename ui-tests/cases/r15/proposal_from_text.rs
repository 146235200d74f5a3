//@ R15 E0277 the trait bound `Proposal: From<&str>` is not satisfied
use keepspan::Proposal;

fn forge() -> Proposal {
    "s1, s2".into()
}

fn main() {}
