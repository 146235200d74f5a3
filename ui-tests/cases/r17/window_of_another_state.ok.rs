//@ R17 E0271 type mismatch resolving `<WriteFile as Action>::State == ReadOnly`
use keepspan::{Action, ContextState, Spans, Window, store::MemoryStore};

#[derive(ContextState)]
struct ReadOnly {
    #[constraint(pinned)]
    rules: Spans,
}

#[derive(ContextState)]
struct Writer {
    #[constraint(pinned)]
    rules: Spans,
}

#[derive(Action)]
#[action(state = Writer, requires(rules))]
struct WriteFile {
    path: String,
}

fn act(window: &mut Window<Writer, MemoryStore>, action: &WriteFile) -> Result<(), Box<dyn std::error::Error>> {
    let permission = window.permit(action)?;
    drop(permission);
    Ok(())
}

fn main() {}
