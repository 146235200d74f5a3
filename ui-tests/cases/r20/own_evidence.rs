//@ R20 E0277 `Sure` is no evidence: how far a span can be trusted is said by keepspan alone
use keepspan::evidence::Cited;

struct Sure;

impl Cited for Sure {}

fn main() {}
