//@ consent E0599 no method named `clone` found for struct `Consent`
use keepspan::Consent;

fn twice(consent: Consent) -> [Consent; 2] {
    [consent.clone(), consent]
}

fn main() {}
