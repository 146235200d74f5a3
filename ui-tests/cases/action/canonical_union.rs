//@ action - `Id` is a union: which of its fields is set is not known, so it has no form
use keepspan::Canonical;

#[derive(Canonical)]
union Id {
    number: u64,
}

fn main() {}
