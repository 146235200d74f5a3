//@ derive - `Agent` is an enum: declare the lanes in a struct with named fields
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
enum Agent { Work(Spans) }

fn main() {}
