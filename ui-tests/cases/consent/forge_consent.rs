//@ consent E0451 fields `
use keepspan::{Consent, SpanId};

fn forge(span: SpanId) -> Consent {
    Consent { numbering: 1, span, several: false }
}

fn main() {}
