//@ R23 E0451 fields `reason`, `recovery` and `digest` of struct `Mutation` are private
use keepspan::Mutation;

fn silent() -> Mutation {
    Mutation { reason: String::new(), recovery: String::new(), digest: false }
}

fn main() {}
