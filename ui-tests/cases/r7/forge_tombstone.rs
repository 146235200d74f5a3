//@ R7 E0423 cannot initialize a tuple struct which contains private fields
#![allow(unreachable_code, unused_variables)]

use keepspan::Tombstone;

fn forged() -> Tombstone {
    Tombstone(todo!())
}

fn main() {}
