//@ R8 E0423 cannot initialize a tuple struct which contains private fields
use keepspan::SpanId;

fn forged() -> SpanId {
    SpanId(7)
}

fn main() {}
