//! Anthropic Messages.

use serde_json::{Value, json};

use super::{At, Files, Reading, Said, only_text, text};
use crate::{
    Content, NewSpan,
    tool::Anthropic,
    wire::{
        Format, ImportError,
        render::{self, Shape},
        validate::Format as _,
    },
};

impl Format for Anthropic {
    const SHAPE: &'static Shape = &render::ANTHROPIC;

    fn read(value: &Value, reading: &mut Reading) -> Result<(), ImportError> {
        if let Value::Array(list) = value {
            return reading.each(list, message);
        }
        if value.get("role").is_some() {
            let answered = RESPONSE.iter().any(|field| value.get(*field).is_some());
            return match value.get("content") {
                // The model had nothing to add, and no message is empty.
                Some(Value::Array(blocks)) if answered && blocks.is_empty() => Ok(()),
                // Of the rest of a response body, no request takes most.
                Some(content) if answered => {
                    message(reading, &json!({ "role": value.get("role"), "content": content }))
                }
                _ => message(reading, value),
            };
        }
        let list = value.get("messages").and_then(Value::as_array);
        let list = list.ok_or(ImportError::NoHistory { format: Self::NAME, list: "messages" })?;
        match value.get("system") {
            Some(said @ Value::String(text)) if !text.is_empty() => {
                reading.take(At::element(said).aside(), Said::Text(said), Files::AsText, NewSpan::notice)
            }
            Some(Value::Array(blocks)) => {
                for block in blocks {
                    let at = At { block: Some(None), ..At::element(block).aside() };
                    let said = block.get("text").map_or(Said::Whole, Said::Text);
                    reading.take(at, said, Files::AsText, NewSpan::notice);
                }
            }
            _ => {}
        }
        reading.each(list, message)
    }

    fn calls(message: &Value, each: &mut dyn FnMut(&str, &str)) {
        for block in blocks(message) {
            if let (Some("tool_use"), Some(id)) = (text(block, "type"), text(block, "id")) {
                each(id, text(block, "name").unwrap_or("unknown"));
            }
        }
    }
}

fn blocks(message: &Value) -> impl Iterator<Item = &Value> {
    message.get("content").and_then(Value::as_array).into_iter().flatten()
}

/// Fields of a response body, by which it is told from a message.
const RESPONSE: &[&str] = &["usage", "stop_reason", "type"];

fn message(reading: &mut Reading, message: &Value) -> Result<(), ImportError> {
    if message.get("tool_calls").or_else(|| message.get("tool_call_id")).is_some() {
        return Err(reading.wrong("it is a message of OpenAI Chat"));
    }
    reading.readable(message, "content")?;
    match text(message, "role") {
        Some("user") => {
            return reading.message(message, "content", Files::Counted, NewSpan::human, |reading, at| {
                block(reading, at, NewSpan::human);
            });
        }
        Some("assistant") => assistant(reading, message),
        Some("system") => {
            return reading.message(message, "content", Files::AsText, NewSpan::notice, |reading, at| {
                block(reading, at, NewSpan::notice);
            });
        }
        _ => return Err(reading.wrong("its `role` is none of user, assistant and system")),
    }
    Ok(())
}

fn block(reading: &mut Reading, at: At<'_>, new: fn(Content) -> NewSpan) {
    let block = at.value;
    match (text(block, "type"), block.get("text")) {
        (Some("text"), Some(said)) => reading.take(at, Said::Text(said), Files::AsText, new),
        (Some("tool_result"), _) => result(reading, at),
        (Some("image" | "document" | "search_result" | "container_upload"), _) => {
            reading.take(at, Said::Whole, Files::Counted, new)
        }
        _ => reading.take_opaque(at, Files::Counted, new),
    }
}

fn result(reading: &mut Reading, at: At<'_>) {
    let block = at.value;
    let said = match block.get("content") {
        Some(content @ Value::String(text)) if !text.is_empty() => Said::Text(content),
        Some(blocks @ Value::Array(list)) if !list.is_empty() => {
            only_text(blocks, "text").map_or(Said::Json(blocks), Said::Text)
        }
        _ => Said::Whole,
    };
    let failed = block.get("is_error") == Some(&Value::Bool(true));
    reading.result(at, said, text(block, "tool_use_id").unwrap_or_default(), None, failed);
}

/// Blocks of a model that are known, and not what a provider compacted.
const KNOWN: &[&str] = &["text", "tool_use", "thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use"];

fn assistant(reading: &mut Reading, message: &Value) {
    let said = match message.get("content") {
        Some(content @ Value::String(_)) => Said::Text(content),
        Some(blocks) => only_text(blocks, "text").map_or(Said::Whole, Said::Text),
        None => Said::Whole,
    };
    let seal = blocks(message).any(|block| matches!(text(block, "type"), Some("thinking" | "redacted_thinking")));
    let known = |kind: &str| KNOWN.contains(&kind) || kind.ends_with("_tool_result");
    let opaque = !blocks(message).all(|block| text(block, "type").is_some_and(known));
    reading.model(message, said, Files::AsText, seal, None);
    if opaque {
        reading.is_opaque();
    }
}
