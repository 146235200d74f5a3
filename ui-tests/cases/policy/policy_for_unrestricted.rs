//@ policy E0117 only traits defined in the current crate
use keepspan::policy::{Policy, Terms, Unrestricted};

impl Policy for Unrestricted {
    type Under = Unrestricted;
    const TERMS: Terms = Terms::of("mine");
}

fn main() {}
