//@ spans E0423 cannot initialize a tuple struct which contains private fields
use keepspan::Spans;

fn made() -> Spans {
    Spans(())
}

fn main() {}
