//@ consent E0451 fields `
use keepspan::{Consent, SpanId};

fn forge(span: SpanId) -> Consent {
    Consent { window: 1, span }
}

fn main() {}
