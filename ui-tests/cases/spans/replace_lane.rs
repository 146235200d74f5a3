//@ spans E0594 cannot assign to data in dereference of `Lanes<
//@ spans E0507 cannot move out of dereference of `Lanes<
use keepspan::{ContextState, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[precondition]
    schema: Spans,
}

fn swap(one: &mut Window<Agent, MemoryStore>, two: &mut Window<Agent, MemoryStore>) -> Result<(), Box<dyn std::error::Error>> {
    let one = one.lanes();
    let two = two.lanes();
    one.schema = two.schema;
    Ok(())
}

fn main() {}
