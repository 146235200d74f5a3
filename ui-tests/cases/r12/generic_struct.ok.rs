//@ R12 E0080 evaluation panicked: `Migration`: trigger 23_500 leaves 500 tokens
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
#[context(budget = 24_000, trigger = 23_000)]
struct Migration<'a, T: Default> {
    #[evictable]
    work: Spans,
    #[context(skip)]
    turn: Option<&'a T>,
}

fn turn<'a, T: Default>(state: &Migration<'a, T>) -> Option<&'a T> {
    state.turn
}

fn main() {
    let _ = turn::<u8>;
}
