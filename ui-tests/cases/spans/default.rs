//@ spans E0599 no function or associated item named `default` found for struct `Spans`
use keepspan::Spans;

fn made() -> Spans {
    Spans::default()
}

fn main() {}
