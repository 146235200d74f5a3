//@ derive - `Agent` is a unit struct: declare the lanes in a struct with named fields
use keepspan::ContextState;

#[derive(ContextState)]
struct Agent;

fn main() {}
