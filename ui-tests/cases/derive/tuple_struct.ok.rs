//@ derive - `Agent` is a tuple struct: declare the lanes in a struct with named fields
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
struct Agent { #[evictable] work: Spans }

fn main() {}
