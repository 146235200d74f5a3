//@ R2 E0277 the trait bound `Done: kind::sealed::Sealed` is not satisfied
use keepspan::rule::LeavesFrom;

struct Done;

impl<F, K> LeavesFrom<F, K> for Done {}

fn main() {}
