//@ R7 E0599 no function or associated item named `default` found for struct `Tombstone`
use keepspan::Tombstone;

fn forged() -> Tombstone {
    Tombstone::default()
}

fn main() {}
