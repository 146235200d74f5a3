//@ derive - `Agent` is a union: declare the lanes in a struct with named fields
use keepspan::ContextState;

#[derive(ContextState)]
union Agent { work: u32 }

fn main() {}
