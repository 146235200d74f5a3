//@ R8 E0451 fields `span` and `text` of struct `keepspan::Pointer` are private
use keepspan::{Pointer, SpanId};

fn forged(span: SpanId) -> Pointer {
    Pointer { span, text: String::new() }
}

fn main() {}
