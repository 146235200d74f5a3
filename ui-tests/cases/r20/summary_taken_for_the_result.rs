//@ R20 E0308 mismatched types
use keepspan::{
    Evidence,
    evidence::{Raw, SecondHand},
};

fn act(evidence: Evidence<SecondHand>) -> Evidence<Raw> {
    evidence
}

fn main() {}
