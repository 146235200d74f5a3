//@ action E0277 `SystemTime` has no canonical form, so no signature can be made of it
use keepspan::Canonical;

#[derive(Canonical)]
enum When {
    Now,
    At(std::time::SystemTime),
}

fn main() {}
