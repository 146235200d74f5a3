//@ derive - `schema` is `#[precondition]`, so its type must be `Spans`
use keepspan::ContextState;

#[derive(ContextState)]
struct Agent {
    #[precondition]
    schema: String,
}

fn main() {}
