//@ consent E0277 `Never` is no effect and no consent of an action: those are named by keepspan alone
use keepspan::action::consent::Consents;

struct Never;

impl Consents for Never {}

fn main() {}
