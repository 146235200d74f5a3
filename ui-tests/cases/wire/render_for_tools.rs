//@ wire E0277 `Mcp` is no format of conversations
use keepspan::{ContextState, Window, store::MemoryStore, tool::{Gemini, Mcp}, wire::Rendered};

fn request<C: ContextState>(window: &Window<C, MemoryStore>) -> Result<Rendered, Box<dyn std::error::Error>> {
    let _ = (Mcp, Gemini);
    Ok(window.render_for(Mcp)?)
}

fn main() {}
