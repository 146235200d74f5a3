//@ R15 E0451 fields
use keepspan::Proposal;

fn forge(proposal: Proposal) -> Proposal {
    Proposal { ..proposal }
}

fn main() {}
