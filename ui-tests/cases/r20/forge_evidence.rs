//@ R20 E0451 fields `
use keepspan::{Evidence, evidence::Raw};

fn forge(evidence: &Evidence<Raw>) -> Evidence<Raw> {
    Evidence { span: evidence.span(), ..*evidence }
}

fn main() {}
