//@ R23 E0451 fields `reason` and `recovery` of struct `Mutation` are private
use keepspan::Mutation;

fn silent() -> Mutation {
    Mutation { reason: String::new(), recovery: String::new() }
}

fn main() {}
