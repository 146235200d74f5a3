//@ R19 E0423 cannot initialize a tuple struct which contains private fields
use keepspan::Override;

fn forge() -> Override {
    Override("because".to_owned())
}

fn main() {}
