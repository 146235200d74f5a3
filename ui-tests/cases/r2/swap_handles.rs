//@ R2 E0596 cannot borrow data in dereference of `Lanes<
//@ R2 E0596 cannot borrow data in dereference of `Lanes<
use keepspan::{ContextState, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
struct Agent {
    #[evictable]
    work: Spans,
}

fn swap(one: &mut Window<Agent, MemoryStore>, two: &mut Window<Agent, MemoryStore>) -> Result<(), Box<dyn std::error::Error>> {
    let one = one.lanes();
    let two = two.lanes();
    std::mem::swap(&mut one.work, &mut two.work);
    Ok(())
}

fn main() {}
