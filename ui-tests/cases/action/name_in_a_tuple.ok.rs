//@ action - `0` stands in a list, where no field has a name: remove `name`
use keepspan::Canonical;

#[derive(Canonical)]
struct Point(i32, i32);

fn main() {}
