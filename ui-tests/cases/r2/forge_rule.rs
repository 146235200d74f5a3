//@ R2 E0210 type parameter `F` must be used as the type parameter for some local type
use keepspan::rule::{LeavesFrom, Open};

impl<F, K> LeavesFrom<F, K> for Open {}

fn main() {}
