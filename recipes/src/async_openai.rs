//! async-openai 0.43, by its types alone: Chat Completions and Responses.
//!
//! ```
//! # use keepspan::{ContextState, Episode, Spans, Window, store::MemoryStore};
//! use async_openai::types::chat::{ChatCompletionRequestUserMessage, CreateChatCompletionRequest};
//! use keepspan_recipes::async_openai::{chat, enter};
//! # #[derive(ContextState)]
//! # struct Agent { #[instruction(roles("system", "user"))] rules: Spans, #[evictable(otherwise)] work: Spans }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let mut window = Window::<Agent, _>::open(MemoryStore::default(), Episode::new("e", "p"))?;
//! # let mut request = CreateChatCompletionRequest { model: "gpt-5".into(), ..Default::default() };
//!
//! enter(&mut window, &[ChatCompletionRequestUserMessage::from("Look at users.").into()])?;
//! request = chat(&window, request)?; // before each `client.chat().create(request.clone())`
//! assert_eq!(request.messages.len(), 1);
//! # Ok(())
//! # }
//! ```

use std::error::Error;

use async_openai::types::{
    chat::{ChatCompletionRequestMessage, CreateChatCompletionRequest},
    responses::{CreateResponse, InputItem},
};
use keepspan::{
    ContextState, SpanId, Window,
    tool::{OpenAiChat, OpenAiResponses},
};

use crate::Stateful;

/// Takes messages in: what a person said, what the model answered, what a tool returned.
///
/// # Errors
/// What [`Lanes::import`](keepspan::Lanes::import) says.
pub fn enter<C: ContextState, St>(
    window: &mut Window<C, St>,
    messages: &[ChatCompletionRequestMessage],
) -> Result<Vec<SpanId>, Box<dyn Error>> {
    Ok(window.lanes().import(OpenAiChat, &serde_json::to_value(messages)?)?.spans)
}

/// The request with the window as its messages.
///
/// # Errors
/// What [`Window::render_for`] says.
pub fn chat<C: ContextState, St>(
    window: &Window<C, St>,
    request: CreateChatCompletionRequest,
) -> Result<CreateChatCompletionRequest, Box<dyn Error>> {
    let messages = serde_json::from_str(window.render_for(OpenAiChat)?.history())?;
    Ok(CreateChatCompletionRequest { messages, ..request })
}

/// As [`enter`], for the items of Responses: what was asked, and a response's output.
///
/// # Errors
/// What [`Lanes::import`](keepspan::Lanes::import) says.
pub fn enter_items<C: ContextState, St>(
    window: &mut Window<C, St>,
    items: &[InputItem],
) -> Result<Vec<SpanId>, Box<dyn Error>> {
    Ok(window.lanes().import(OpenAiResponses, &serde_json::to_value(items)?)?.spans)
}

/// As [`chat`], for Responses.
///
/// # Errors
/// [`Stateful`], and what [`Window::render_for`] says.
pub fn response<C: ContextState, St>(
    window: &Window<C, St>,
    request: CreateResponse,
) -> Result<CreateResponse, Box<dyn Error>> {
    let elsewhere = request.previous_response_id.is_some() || request.conversation.is_some();
    if elsewhere || request.context_management.is_some() {
        return Err(Stateful.into());
    }
    let input = serde_json::from_str(window.render_for(OpenAiResponses)?.history())?;
    Ok(CreateResponse { input, ..request })
}
