//@ policy E0277 `Deploy` is no act that a policy can permit: acts are named by keepspan alone
use keepspan::policy::Act;

struct Deploy;

impl Act for Deploy {}

fn main() {}
