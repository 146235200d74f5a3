//! genai 0.7: any of its providers.
//!
//! ```
//! # use keepspan::{ContextState, Episode, Spans, Window, store::MemoryStore};
//! use genai::chat::{ChatMessage, ChatRequest};
//! use keepspan_recipes::genai::{enter, shown};
//! # #[derive(ContextState)]
//! # struct Agent { #[instruction(roles("system", "user"))] rules: Spans, #[evictable(otherwise)] work: Spans }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let mut window = Window::<Agent, _>::open(MemoryStore::default(), Episode::new("e", "p"))?;
//! # let mut request = ChatRequest::default();
//!
//! enter(&mut window, &ChatMessage::user("Look at users."))?;
//! request = shown(&window, request)?; // before each `client.exec_chat(model, request.clone(), None)`
//! assert_eq!(request.messages.len(), 1);
//! # Ok(())
//! # }
//! ```

use std::error::Error;

use genai::chat::{ChatMessage, ChatRequest, ChatRole, ToolCall, ToolResponse};
use keepspan::{ContextState, SpanId, Window, tool::OpenAiChat};
use serde_json::{Value, json};

use crate::Stateful;

/// Takes a message in: what a person said, what the model answered, what tools returned. A turn with calls is kept as genai
/// has it, thought signatures too. Text only, but for what the model said.
///
/// # Errors
/// What [`Lanes::import`](keepspan::Lanes::import) says, and a message that has something else than text.
pub fn enter<C: ContextState, St>(
    window: &mut Window<C, St>,
    message: &ChatMessage,
) -> Result<Vec<SpanId>, Box<dyn Error>> {
    let (content, role) = (&message.content, message.role.to_string().to_lowercase());
    let call = |of: &ToolCall| json!({ "id": of.call_id, "type": "function", "function": { "name": of.fn_name, "arguments": "{}" } });
    let calls: Vec<_> = content.tool_calls().into_iter().map(call).collect();
    let result = |of: &ToolResponse| json!({ "role": "tool", "tool_call_id": of.call_id, "content": of.content });
    let messages = match message.role {
        ChatRole::Tool => content.tool_responses().into_iter().map(result).collect(),
        _ if content.is_text_only() => json!([{ "role": role, "content": content.joined_texts() }]),
        ChatRole::Assistant => json!([{ "role": role, "content": null, "tool_calls": calls, "genai": message }]),
        _ => return Err("this recipe takes text: push an image with `NewSpan::image`".into()),
    };
    Ok(window.lanes().import(OpenAiChat, &messages)?.spans)
}

/// The request with the window as its messages.
///
/// # Errors
/// [`Stateful`], and what [`Window::render_for`] says.
pub fn shown<C: ContextState, St>(window: &Window<C, St>, request: ChatRequest) -> Result<ChatRequest, Box<dyn Error>> {
    if request.previous_response_id.is_some() {
        return Err(Stateful.into());
    }
    let message = |of: &Value| {
        let text = of["content"].as_str().unwrap_or_default();
        Ok(match of["role"].as_str() {
            Some("assistant") if of["genai"].is_object() => serde_json::from_value(of["genai"].clone())?,
            Some("assistant") => ChatMessage::assistant(text),
            Some("tool") => ToolResponse::new(of["tool_call_id"].as_str().unwrap_or_default(), text).into(),
            Some("system") => ChatMessage::system(text),
            _ => ChatMessage::user(text),
        })
    };
    let history: Vec<Value> = serde_json::from_str(window.render_for(OpenAiChat)?.history())?;
    let messages = history.iter().map(message).collect::<Result<_, serde_json::Error>>()?;
    Ok(ChatRequest { messages, ..request })
}
