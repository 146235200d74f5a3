//@ R7 E0423 cannot initialize a tuple struct which contains private fields
use keepspan::Tombstone;

fn forged() -> Tombstone {
    Tombstone(todo!())
}

fn main() {}
