//! OpenAI Chat Completions.

use serde_json::Value;

use super::{At, Files, Reading, Said, only_text, text};
use crate::{
    NewSpan,
    tool::OpenAiChat,
    wire::{
        Format, ImportError,
        render::{self, Shape},
        validate::Format as _,
    },
};

impl Format for OpenAiChat {
    const SHAPE: &'static Shape = &render::OPENAI_CHAT;

    fn read(value: &Value, reading: &mut Reading) -> Result<(), ImportError> {
        let list = match value {
            Value::Array(list) => list.as_slice(),
            _ if value.get("role").is_some() => std::slice::from_ref(value),
            _ => {
                let answer = value.pointer("/choices/0/message").map(std::slice::from_ref);
                let answer = answer.map(|answer| if answer.iter().any(says_something) { answer } else { &[] });
                let list = value.get("messages").and_then(Value::as_array).map(Vec::as_slice).or(answer);
                list.ok_or(ImportError::NoHistory { format: Self::NAME, list: "messages" })?
            }
        };
        reading.each(list, message)
    }

    fn calls(message: &Value, each: &mut dyn FnMut(&str, &str)) {
        for call in message.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            let called = call.get("function").or_else(|| call.get("custom"));
            let name = called.and_then(|called| text(called, "name")).unwrap_or("unknown");
            each(text(call, "id").unwrap_or_default(), name);
        }
        if let Some(name) = message.get("function_call").and_then(|call| text(call, "name")) {
            each(name, name);
        }
    }
}

fn message(reading: &mut Reading, message: &Value) -> Result<(), ImportError> {
    let role = text(message, "role").ok_or_else(|| reading.wrong("it has no `role`"))?;
    reading.readable(message, "content")?;
    let mut blocks = message.get("content").and_then(Value::as_array).into_iter().flatten();
    if blocks.any(|block| matches!(text(block, "type"), Some("tool_use" | "tool_result" | "thinking"))) {
        return Err(reading.wrong("it is a message of Anthropic"));
    }
    match role {
        "system" | "developer" => {
            return reading.message(message, "content", Files::AsText, NewSpan::notice, |reading, at| {
                part(reading, at, NewSpan::notice);
            });
        }
        "user" => {
            return reading.message(message, "content", Files::Counted, NewSpan::human, |reading, at| {
                part(reading, at, NewSpan::human);
            });
        }
        "assistant" => assistant(reading, message),
        "tool" => result(reading, message, text(message, "tool_call_id").unwrap_or_default()),
        "function" => result(reading, message, text(message, "name").unwrap_or_default()),
        _ => return Err(reading.wrong("its `role` is none of system, developer, user, assistant, tool and function")),
    }
    Ok(())
}

fn part(reading: &mut Reading, at: At<'_>, new: fn(crate::Content) -> NewSpan) {
    match (text(at.value, "type"), at.value.get("text")) {
        (Some("text"), Some(said)) => reading.take(at, Said::Text(said), Files::AsText, new),
        (Some("image_url" | "input_audio" | "file"), _) => reading.take(at, Said::Whole, Files::Counted, new),
        _ => reading.take_opaque(at, Files::Counted, new),
    }
}

/// Fields of an answer that say something beside its content.
const BESIDE: &[&str] = &["tool_calls", "function_call", "refusal", "audio", "reasoning_content", "reasoning"];

fn says_beside(message: &Value) -> bool {
    let says = |value: &Value| !value.is_null() && *value != Value::Array(Vec::new());
    BESIDE.iter().any(|field| message.get(*field).is_some_and(says))
}

/// Whether there is anything in an answer: of what a filter took back, the provider takes no message.
fn says_something(message: &Value) -> bool {
    says_beside(message) || message.get("content").is_some_and(|content| !content.is_null())
}

fn assistant(reading: &mut Reading, message: &Value) {
    let content = message.get("content");
    let said = match content {
        _ if says_beside(message) => Said::Whole,
        Some(content @ Value::String(_)) => Said::Text(content),
        Some(blocks) => only_text(blocks, "text").map_or(Said::Whole, Said::Text),
        None => Said::Whole,
    };
    let parts = content.and_then(Value::as_array).into_iter().flatten();
    let calls = message.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
    let known = parts.map(|part| matches!(text(part, "type"), Some("text" | "refusal")));
    let opaque = !known
        .chain(calls.map(|call| matches!(text(call, "type"), None | Some("function" | "custom"))))
        .all(|known| known);
    reading.model(message, said, Files::AsText, false, None);
    if opaque {
        reading.is_opaque();
    }
}

fn result(reading: &mut Reading, message: &Value, id: &str) {
    let said = match message.get("content") {
        Some(content @ Value::String(text)) if !text.is_empty() => Said::Text(content),
        Some(blocks @ Value::Array(_)) => only_text(blocks, "text").map_or(Said::Json(blocks), Said::Text),
        _ => Said::Whole,
    };
    reading.result(At::element(message), said, id, text(message, "name"), false);
}
