//! OpenAI Responses. Sources: the API reference, "Create a model response", the guides on function calling, reasoning and
//! compaction, and error texts in public reports. `compaction` items are opaque; hosted tools keep call and result in one.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    Format, Rule,
    calls::Calls,
    judge::{At, Judge, Kinds, given},
    sealed::Sealed,
};
use crate::tool::{OpenAiResponses, Provider};

const ROLES: &[&str] = &["system", "developer", "user", "assistant"];
const INPUT: &[&str] = &["system", "developer", "user"];
const ASSISTANT: &[&str] = &["assistant"];

const PARTS: &Kinds = &[
    ("input_text", INPUT),
    ("input_image", INPUT),
    ("input_file", INPUT),
    ("input_audio", INPUT),
    ("output_text", ASSISTANT),
    ("refusal", ASSISTANT),
];

/// A call, and the item that answers it.
const PAIRS: &[(&str, &str)] = &[
    ("function_call", "function_call_output"),
    ("custom_tool_call", "custom_tool_call_output"),
    ("computer_call", "computer_call_output"),
    ("shell_call", "shell_call_output"),
    ("local_shell_call", "local_shell_call_output"),
    ("apply_patch_call", "apply_patch_call_output"),
    ("tool_search_call", "tool_search_output"),
];

/// Items that are neither messages, calls nor their results.
const OTHERS: &[&str] = &[
    "reasoning",
    "compaction",
    "compaction_trigger",
    "item_reference",
    "file_search_call",
    "web_search_call",
    "image_generation_call",
    "code_interpreter_call",
    "mcp_list_tools",
    "mcp_call",
    "mcp_approval_request",
    "mcp_approval_response",
    "additional_tools",
];

impl Sealed for OpenAiResponses {}
impl Format for OpenAiResponses {
    const NAME: &'static str = <Self as Provider>::NAME;
    const LIST: &'static str = "/input";
    const TEXT: bool = true;

    fn judge(judge: &mut Judge, body: &Value, history: &[Value]) {
        let referring = history.iter().any(|item| kind(item) == Some("item_reference"));
        let elsewhere = referring || given(body, "previous_response_id") || given(body, "conversation");
        let (mut ids, mut calls) = (HashSet::new(), Calls::new());
        let mut reasoning = None;
        for (index, item) in history.iter().enumerate() {
            let at = At::message(index);
            let Some(kind) = kind(item) else {
                judge.found(at, Rule::Field { field: "type" });
                continue;
            };
            if let Some(id) = id(item)
                && !ids.insert(id)
            {
                judge.found(at, Rule::Duplicate);
            }
            if kind != "reasoning"
                && let Some(reasoning) = reasoning.take()
                && !led_to(item, kind)
            {
                judge.found(reasoning, Rule::Reasoning);
            }
            match kind {
                "message" => message(judge, item, at),
                "reasoning" => {
                    judge.needs(item.get("summary").is_some_and(Value::is_array), "summary", at);
                    reasoning = id(item).map(|_| at);
                }
                "compaction" => {
                    judge.text(item, "encrypted_content", "/encrypted_content", at);
                }
                _ => paired(judge, &mut calls, item, kind, at, elsewhere),
            }
        }
        if let Some(reasoning) = reasoning {
            judge.found(reasoning, Rule::Reasoning);
        }
        if !referring {
            calls.close(judge);
        }
    }
}

/// An item's type; a message may do without, and a reference.
fn kind(item: &Value) -> Option<&str> {
    match item.get("type") {
        None | Some(Value::Null) if item.get("role").is_some() => Some("message"),
        None | Some(Value::Null) if id(item).is_some() => Some("item_reference"),
        kind => kind.and_then(Value::as_str),
    }
}

fn id(item: &Value) -> Option<&str> {
    item.get("id").and_then(Value::as_str)
}

/// Whether an item can be what reasoning before it led to. Of an unknown type, it can.
fn led_to(item: &Value, kind: &str) -> bool {
    if kind == "message" && item.get("role").and_then(Value::as_str) != Some("assistant") {
        return false;
    }
    let known = kind == "message" || OTHERS.contains(&kind) || PAIRS.iter().any(|(call, _)| *call == kind);
    let result = PAIRS.iter().any(|(_, output)| *output == kind);
    !result && (!known || id(item).is_some())
}

fn message(judge: &mut Judge, item: &Value, at: At) {
    let Some(role) = judge.role(item, at, ROLES) else { return };
    match item.get("content") {
        Some(Value::String(_)) => {}
        Some(Value::Array(parts)) if !parts.is_empty() => {
            for (index, part) in parts.iter().enumerate() {
                let at = at.item("content", index);
                if let Some("input_text" | "output_text") = judge.kind(part, at, PARTS, role) {
                    judge.needs(part.get("text").is_some_and(Value::is_string), "text", at);
                }
            }
        }
        _ => judge.found(at, Rule::NoContent),
    }
}

/// Takes a call or a result; what is neither is passed over.
fn paired<'a>(
    judge: &mut Judge,
    calls: &mut Calls<(&'static str, &'a str)>,
    item: &'a Value,
    kind: &str,
    at: At,
    elsewhere: bool,
) {
    let Some((call, output)) = PAIRS.iter().find(|(call, output)| *call == kind || *output == kind) else {
        if !OTHERS.contains(&kind) {
            judge.unknown(at);
        }
        return;
    };
    // The provider ran this search itself.
    if *call == "tool_search_call" && !given(item, "call_id") {
        return;
    }
    match kind {
        "function_call" => {
            judge.text(item, "name", "/name", at);
            judge.needs(item.get("arguments").is_some_and(Value::is_string), "arguments", at);
        }
        "custom_tool_call" => {
            judge.text(item, "name", "/name", at);
            judge.needs(item.get("input").is_some_and(Value::is_string), "input", at);
        }
        "function_call_output" | "custom_tool_call_output" => {
            let output = item.get("output");
            judge.needs(output.is_some_and(|output| output.is_string() || output.is_array()), "output", at);
        }
        _ => {}
    }
    // The reference has `id` here and the guide `call_id`.
    let name =
        if *output == kind && kind == "local_shell_call_output" && !given(item, "call_id") { "id" } else { "call_id" };
    let Some(id) = item.get(name).and_then(Value::as_str).filter(|id| !id.is_empty()) else {
        return judge.found(at, Rule::Field { field: "call_id" });
    };
    let key = (*call, id);
    if *call == kind {
        calls.call(judge, key, at);
    } else if !elsewhere || calls.knows(&key) {
        calls.answer(judge, &key, at);
    }
}
