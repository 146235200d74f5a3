//! Conversations in the four formats that providers take, over JSON values: [in](crate::Lanes::import),
//! [out](crate::Window::render_for), and [judged](validate()).
//!
//! What is imported is rendered as it was, as JSON: a span has the text, and its frame, the JSON around the text, is
//! recorded with it. A model's message that is more than text is one span: its JSON, whole. Two things are written in one way
//! only: Gemini's `system_instruction` comes back as `systemInstruction`, and what stands where its provider takes nothing,
//! between a call and its results, comes back behind those.
//!
//! | imported | becomes |
//! | --- | --- |
//! | system prompts and messages | [notices](crate::Origin::Notice) of role system, a block each |
//! | a user's text, image or file | a span of a [human](crate::Origin::Human), a block each |
//! | a model's message, all its calls | one span; in Responses an item each, of one turn |
//! | a result | a span of the tool's name, which [answers](crate::NewSpan::answers) its call |
//! | signed reasoning | [sealed](crate::NewSpan::sealed): it leaves whole |
//! | a block of unknown type, what a provider compacted | kept verbatim; no pass takes it, and no summary takes its place |
//!
//! ```
//! use keepspan::{ContextState, Episode, NewSpan, Spans, Window, store::MemoryStore, tool::Anthropic, wire};
//! use serde_json::json;
//!
//! #[derive(ContextState)]
//! struct Agent {
//!     #[instruction(roles("system", "user"))]
//!     asked: Spans,
//!     #[evictable(otherwise)]
//!     work: Spans,
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let history = json!({ "system": "Be brief.", "messages": [
//!     { "role": "user", "content": "What is in a.txt?" },
//!     { "role": "assistant", "content": [{ "type": "tool_use", "id": "t1", "name": "read", "input": { "path": "a.txt" } }] },
//!     { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "t1", "content": "lorem ipsum" }] },
//! ] });
//! let mut window = Window::<Agent, _>::open(MemoryStore::default(), Episode::new("run-1", "p1"))?;
//! let imported = window.lanes().import(Anthropic, &history)?;
//! assert_eq!(imported.spans.len(), 4);
//! assert_eq!(window.render_for(Anthropic)?.to_value(), history);
//!
//! // What leaves is a pointer, and the rest is as it was.
//! let lanes = window.lanes().externalize().wait()?;
//! lanes.work.evict(imported.spans[2]).wait()?;
//! let request = window.render_for(Anthropic)?;
//! assert!(wire::validate(Anthropic, &request.to_value()).is_ok());
//! assert!(request.history().contains("[s3 to s4: 2 spans, "), "{}", request.history()); // .. recall any by id]
//! # Ok(())
//! # }
//! ```
//!
//! What JSON costs around a text (roles, keys, ids) is not counted: leave room for it in the budget's `fixed` part.

mod error;
mod frame;
mod import;
mod media;
mod render;
pub mod validate;

use serde_json::Value;

pub use self::{
    error::{ImportError, RenderError},
    import::Imported,
    render::Rendered,
    validate::validate,
};
pub(crate) use self::{
    frame::{Wire, Wires},
    import::{Made, Read, Reading, Waiting},
    media::Media,
    render::write,
};
use crate::tool::Provider;

/// Refuses what is nested too deep.
pub(crate) fn shallow<F: Format>(json: &Value) -> Result<(), ImportError> {
    let format = <F as validate::Format>::NAME;
    if frame::is_too_deep(json) { Err(ImportError::TooDeep { format }) } else { Ok(()) }
}

/// A format that conversations are imported from and rendered for: [`OpenAiChat`](crate::tool::OpenAiChat),
/// [`OpenAiResponses`](crate::tool::OpenAiResponses), [`Anthropic`](crate::tool::Anthropic) or
/// [`Gemini`](crate::tool::Gemini).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no format of conversations",
    label = "give `OpenAiChat`, `OpenAiResponses`, `Anthropic` or `Gemini` of `keepspan::tool`"
)]
pub trait Format: validate::Format + Provider {
    #[doc(hidden)]
    const SHAPE: &'static render::Shape;

    /// Reads a body, a list or one message of the format.
    #[doc(hidden)]
    fn read(value: &Value, reading: &mut import::Reading) -> Result<(), ImportError>;

    /// Gives each call of a model's message: its id and its name.
    #[doc(hidden)]
    fn calls(message: &Value, each: &mut dyn FnMut(&str, &str));
}
