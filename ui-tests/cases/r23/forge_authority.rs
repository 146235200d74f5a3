//@ R23 E0423 cannot initialize a tuple struct which contains private fields
use keepspan::Authority;

fn nobody() -> Authority {
    Authority(String::new())
}

fn main() {}
