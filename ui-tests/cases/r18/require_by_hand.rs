//@ R18 E0277 `work` holds `Evictable` spans, and no action can depend on those
use keepspan::{Action, ContextState, Spans, action::Requirement};

#[derive(ContextState)]
struct Agent {
    #[precondition]
    schema: Spans,
    #[evictable]
    work: Spans,
}

const NEEDS: Requirement = Requirement::of::<Agent, _>(|lanes| &lanes.work);

fn main() {}
