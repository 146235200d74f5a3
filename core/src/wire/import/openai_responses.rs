//! OpenAI Responses: a flat list of items. Those of a model that follow each other are one turn.

use serde_json::Value;

use super::{At, Files, Reading, Said, only_text, sole, text};
use crate::{
    Content, NewSpan,
    tool::OpenAiResponses,
    wire::{
        Format, ImportError,
        render::{self, Shape},
        validate::Format as _,
    },
};

/// The label of every turn: one ends with the first item that is not the model's.
const TURN: &str = "response";

/// Fields by which a request refers to history elsewhere.
const ELSEWHERE: &[&str] = &["previous_response_id", "conversation"];

impl Format for OpenAiResponses {
    const SHAPE: &'static Shape = &render::OPENAI_RESPONSES;

    fn read(value: &Value, reading: &mut Reading) -> Result<(), ImportError> {
        let list = match value {
            Value::Array(list) => list.as_slice(),
            // Some items have an input or an output too.
            _ if value.get("type").or_else(|| value.get("role")).is_some() => std::slice::from_ref(value),
            _ => match (value.get("input"), value.get("output")) {
                (Some(said @ Value::String(_)), _) => {
                    around(reading, value);
                    reading.take(sole(said), Said::Text(said), Files::AsText, NewSpan::human);
                    return Ok(());
                }
                (Some(Value::Array(list)), _) => {
                    around(reading, value);
                    list
                }
                (None, Some(Value::Array(list))) => list,
                _ => return Err(ImportError::NoHistory { format: Self::NAME, list: "input" }),
            },
        };
        reading.each(list, item)
    }

    fn calls(item: &Value, each: &mut dyn FnMut(&str, &str)) {
        let kind = text(item, "type").unwrap_or_default();
        if kind == "mcp_approval_request" {
            return each(text(item, "id").unwrap_or_default(), kind);
        }
        let searched = kind == "tool_search_call";
        if CALLS.contains(&kind)
            && let Some(id) =
                text(item, "call_id").or_else(|| text(item, "id").filter(|_| searched || kind == "local_shell_call"))
        {
            each(id, text(item, "name").unwrap_or(kind));
        }
    }
}

/// What a body says beside its list.
fn around(reading: &mut Reading, body: &Value) {
    let given = |field: &&&str| body.get(**field).is_some_and(|value| !value.is_null());
    reading.elsewhere = ELSEWHERE.iter().find(given).copied();
    if let Some(said @ Value::String(text)) = body.get("instructions")
        && !text.is_empty()
    {
        reading.take(At::element(said).aside(), Said::Text(said), Files::AsText, NewSpan::notice);
    }
}

/// Items of a model that a result answers.
const CALLS: &[&str] = &[
    "function_call",
    "custom_tool_call",
    "computer_call",
    "shell_call",
    "local_shell_call",
    "apply_patch_call",
    "tool_search_call",
];

/// Items of a model that none answers.
const HOSTED: &[&str] = &[
    "reasoning",
    "file_search_call",
    "web_search_call",
    "image_generation_call",
    "code_interpreter_call",
    "mcp_call",
    "mcp_approval_request",
];

fn item(reading: &mut Reading, item: &Value) -> Result<(), ImportError> {
    let kind = match text(item, "type") {
        Some(kind) => kind,
        None if item.get("role").is_some() => "message",
        None if item.get("id").is_some() => "item_reference",
        None => return Err(reading.wrong("it has no `type`")),
    };
    let at = At::element(item);
    match kind {
        "message" => return message(reading, item),
        "mcp_approval_response" => {
            let id = text(item, "approval_request_id").unwrap_or_default();
            reading.result(at, Said::Whole, id, None, false);
        }
        _ if CALLS.contains(&kind) || HOSTED.contains(&kind) => {
            let seal = kind == "reasoning";
            reading.model(item, Said::Whole, Files::Counted, seal, Some(TURN));
        }
        _ if kind
            .strip_suffix("_output")
            .is_some_and(|call| CALLS.iter().any(|name| name.strip_suffix("_call") == Some(call) || *name == call)) =>
        {
            result(reading, item, kind);
        }
        // What tools there are.
        "mcp_list_tools" => reading.take(at, Said::Whole, Files::AsText, |content| NewSpan::tool(kind, content)),
        "additional_tools" => reading.take(at, Said::Whole, Files::AsText, NewSpan::notice),
        _ => reading.take_opaque(at, Files::Counted, NewSpan::model),
    }
    Ok(())
}

fn message(reading: &mut Reading, item: &Value) -> Result<(), ImportError> {
    reading.readable(item, "content")?;
    match text(item, "role") {
        Some("user") => {
            return reading.message(item, "content", Files::Counted, NewSpan::human, |reading, at| {
                part(reading, at, NewSpan::human);
            });
        }
        Some("system" | "developer") => {
            return reading.message(item, "content", Files::AsText, NewSpan::notice, |reading, at| {
                part(reading, at, NewSpan::notice);
            });
        }
        Some("assistant") => {
            let said = match item.get("content") {
                Some(content @ Value::String(_)) => Said::Text(content),
                Some(parts) => only_text(parts, "output_text").map_or(Said::Whole, Said::Text),
                None => Said::Whole,
            };
            reading.model(item, said, Files::AsText, false, Some(TURN));
        }
        _ => return Err(reading.wrong("its `role` is none of user, assistant, system and developer")),
    }
    Ok(())
}

fn part(reading: &mut Reading, at: At<'_>, new: fn(Content) -> NewSpan) {
    match (text(at.value, "type"), at.value.get("text")) {
        (Some("input_text"), Some(said)) => reading.take(at, Said::Text(said), Files::AsText, new),
        (Some("input_image" | "input_file" | "input_audio"), _) => reading.take(at, Said::Whole, Files::Counted, new),
        _ => reading.take_opaque(at, Files::Counted, new),
    }
}

fn result(reading: &mut Reading, item: &Value, kind: &str) {
    let said = match item.get("output").or_else(|| item.get("tools")) {
        Some(output @ Value::String(text)) if !text.is_empty() => Said::Text(output),
        Some(parts @ Value::Array(list)) if !list.is_empty() => {
            only_text(parts, "input_text").map_or(Said::Json(parts), Said::Text)
        }
        Some(output @ Value::Object(_)) => Said::Json(output),
        _ => Said::Whole,
    };
    let id = text(item, "call_id").map(Into::into).or_else(|| match kind {
        // The provider ran this search itself.
        "tool_search_output" => reading.called("tool_search_call"),
        "local_shell_call_output" => text(item, "id").map(Into::into),
        _ => None,
    });
    reading.result(At::element(item), said, id.as_deref().unwrap_or_default(), None, false);
}
