//@ policy E0080 evaluation panicked: `Strict`: max_budget 200_000 is above the 100_000 of `House`
use keepspan::policy;

policy! {
    House { max_budget = 100_000, max_decision = 2_000 }
}

policy! {
    Strict: House { max_budget = 50_000 }
}

fn main() {
    let _: Option<Strict> = None;
}
