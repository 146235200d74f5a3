//@ R4 E0423 cannot initialize a tuple struct which contains private fields
use keepspan::Escalation;

fn silent() -> Escalation {
    Escalation(String::new())
}

fn main() {}
