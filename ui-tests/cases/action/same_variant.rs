//@ action - `Wide` has the name `Int` in the signature, as the variant `Int` has: choose another
use keepspan::Canonical;

#[derive(Canonical)]
enum Column {
    Int,
    #[signature(name = "Int")]
    Wide(u8),
}

fn main() {}
