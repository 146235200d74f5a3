//@ R3 E0117 only traits defined in the current crate can be implemented for types defined outside of the crate
use keepspan::kind::{Evictable, Protected};

impl Protected for Evictable {}

fn main() {}
