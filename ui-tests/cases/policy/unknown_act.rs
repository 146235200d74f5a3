//@ policy - `House` forbids an unknown act `Evict`
use keepspan::policy;

policy! {
    pub House { forbid(Evict) }
}

fn main() {}
