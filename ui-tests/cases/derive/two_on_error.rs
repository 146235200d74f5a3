//@ derive - `refused` is never reached: `failed` already has `on_error`
use keepspan::{ContextState, Spans};

#[derive(ContextState)]
struct Agent {
    #[negative_result(on_error)] failed: Spans,
    #[negative_result(on_error)] refused: Spans,
    #[evictable(otherwise)] work: Spans,
}

fn main() {}
