//@ action - `Drop` has an unknown key `destroys`, expected one of: `state`, `requires`, `destructive`, `consent`, `name`, `check`, `describe`, `crate`
//@ action - `table` has an unknown key `ignore`, expected one of: `skip`, `with`, `name`
//@ action - `Drop` names no state: add `#[action(state = Migration)]`
use keepspan::Action;

#[derive(Action)]
#[action(destroys)]
struct Drop {
    #[signature(ignore)]
    table: String,
    at: std::time::SystemTime,
}

fn main() {}
