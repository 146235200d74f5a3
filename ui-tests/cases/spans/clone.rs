//@ spans E0277 the trait bound `Spans: Clone` is not satisfied
//@ spans E0277 the trait bound `Spans: Clone` is not satisfied
use keepspan::Spans;

fn twice(spans: &Spans) -> impl Clone {
    Clone::clone(spans)
}

fn main() {}
