//@ policy - `House` names an unknown kind `schema`
use keepspan::policy;

policy! {
    pub House { present(schema) }
}

fn main() {}
