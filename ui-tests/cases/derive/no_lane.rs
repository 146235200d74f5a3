//@ derive - `Agent` has no lane
use keepspan::ContextState;

#[derive(ContextState)]
struct Agent {
    #[context(skip)]
    turn: u32,
}

fn main() {}
