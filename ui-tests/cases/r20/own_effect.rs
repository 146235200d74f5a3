//@ R20 E0277 `Harmless` is no effect and no consent of an action: those are named by keepspan alone
use keepspan::action::effect::Effect;

struct Harmless;

impl Effect for Harmless {}

fn main() {}
