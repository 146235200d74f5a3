//@ R17 E0451 fields `
use keepspan::Complete;

fn forge(complete: Complete<'_>) -> Complete<'_> {
    Complete { ..complete }
}

fn main() {}
