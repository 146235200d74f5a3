//! OpenAI Chat Completions, and the many servers that speak it. Source: the API reference, "Create chat completion", and
//! error texts in public reports. Not judged: the deprecated `function_call` and its `function` messages.

use serde_json::Value;

use super::{
    Format, Rule,
    calls::Calls,
    judge::{At, Judge, Kinds, given},
    sealed::Sealed,
};
use crate::tool::{OpenAiChat, Provider};

const ROLES: &[&str] = &["system", "developer", "user", "assistant", "tool", "function"];

const PARTS: &Kinds = &[
    ("text", ROLES),
    ("refusal", &["assistant"]),
    ("image_url", &["user"]),
    ("input_audio", &["user"]),
    ("file", &["user"]),
];

/// What an assistant message may have instead of content.
const INSTEAD: &[&str] = &["tool_calls", "function_call", "refusal", "audio"];

impl Sealed for OpenAiChat {}
impl Format for OpenAiChat {
    const NAME: &'static str = <Self as Provider>::NAME;
    const LIST: &'static str = "/messages";

    fn judge(judge: &mut Judge, _: &Value, history: &[Value]) {
        let mut calls = Calls::new();
        for (index, message) in history.iter().enumerate() {
            let at = At::message(index);
            let role = judge.role(message, at, ROLES);
            if role != Some("tool") {
                calls.close(judge);
            }
            let Some(role) = role else { continue };
            content(judge, message, at, role);
            match role {
                "assistant" => tool_calls(judge, &mut calls, message, at),
                "tool" => {
                    if let Some(id) = judge.text(message, "tool_call_id", "/tool_call_id", at) {
                        calls.answer(judge, &id, at);
                    }
                }
                _ => {}
            }
        }
        calls.close(judge);
    }
}

fn content(judge: &mut Judge, message: &Value, at: At, role: &str) {
    match message.get("content") {
        Some(Value::String(_)) => {}
        Some(Value::Array(parts)) if !parts.is_empty() => {
            for (index, part) in parts.iter().enumerate() {
                let at = at.item("content", index);
                if judge.kind(part, at, PARTS, role) == Some("text") {
                    judge.needs(part.get("text").is_some_and(Value::is_string), "text", at);
                }
            }
        }
        None | Some(Value::Null) if role == "assistant" && INSTEAD.iter().any(|field| given(message, field)) => {}
        _ => judge.found(at, Rule::NoContent),
    }
}

fn tool_calls<'a>(judge: &mut Judge, calls: &mut Calls<&'a str>, message: &'a Value, at: At) {
    let list = match message.get("tool_calls") {
        None | Some(Value::Null) => return,
        Some(Value::Array(list)) if !list.is_empty() => list,
        Some(_) => return judge.found(at, Rule::Field { field: "tool_calls" }),
    };
    for (index, call) in list.iter().enumerate() {
        let at = at.item("tool_calls", index);
        if let Some(id) = judge.text(call, "id", "/id", at) {
            calls.call(judge, id, at);
        }
        match judge.text(call, "type", "/type", at) {
            Some("function") => {
                judge.text(call, "function/name", "/function/name", at);
                judge.needs(text(call, "/function/arguments"), "function/arguments", at);
            }
            Some("custom") => {
                judge.text(call, "custom/name", "/custom/name", at);
                judge.needs(text(call, "/custom/input"), "custom/input", at);
            }
            Some(_) => judge.unknown(at),
            None => {}
        }
    }
}

/// Whether there is a text, be it empty.
fn text(of: &Value, pointer: &str) -> bool {
    of.pointer(pointer).is_some_and(Value::is_string)
}
