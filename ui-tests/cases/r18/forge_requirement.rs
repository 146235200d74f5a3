//@ R18 E0451 fields `state`, `lane` and `name`
use keepspan::action::Requirement;

const NEEDS: Requirement = Requirement { state: "Agent", lane: 1, name: "work" };

fn main() {}
