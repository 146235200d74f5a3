//@ R2 E0277 `Done` is given its rules by keepspan alone
use keepspan::rule::LeavesFrom;

struct Done;

impl<F, K> LeavesFrom<F, K> for Done {}

fn main() {}
