//! What the formats look like from outside: what goes around a text that no import gave a frame.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::{
    tool::Gemini,
    wire::{
        Format as _,
        frame::{self, quoted},
    },
};

/// A format, as a writer sees it.
#[derive(Debug)]
pub struct Shape {
    /// Marks its frames.
    pub(in crate::wire) letter: char,
    /// The field of a body that has the history.
    pub(super) list: &'static str,
    /// Around a text, as a JSON string.
    pub(super) user: Around,
    pub(super) model: Around,
    pub(super) system: System,
    /// Around an image: before its media type, between that and its base64, and after it.
    pub(super) image: (&'static str, &'static str, &'static str),
    /// The message around blocks, where content is one of the user's and results are blocks.
    pub(super) blocks: Around,
    /// Whether results are blocks of one message.
    pub(super) results_are_blocks: bool,
    /// Whether nothing may stand between a call and its results.
    pub(super) results_adjoin: bool,
    pub(super) result: fn(&Answer<'_>, &mut Vec<u8>),
    /// What a model's turn that a program pushed as JSON is in the list.
    pub(super) turn: fn(Value) -> Option<Vec<Value>>,
    /// Whether the provider refuses signatures over what changed.
    pub(super) checks_seals: bool,
    /// Whether a call can be where only the provider sees it.
    pub(super) keeps_orphans: bool,
    /// Whether calls come right after what the user, or a result, says.
    pub(super) calls_follow_user: bool,
}

type Around = (&'static str, &'static str);

/// Where system text goes.
#[derive(Clone, Copy, Debug)]
pub(super) enum System {
    /// Into the list.
    Listed(Around),
    /// Into this field: a text, or blocks.
    Blocks(&'static str),
    /// Into this field, which is a message.
    Message(&'static str),
    /// Into the list; this field takes what was imported from there.
    Field(&'static str, Around),
}

/// The result of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer<'a> {
    pub(super) call: &'a str,
    /// The tool that it came from; none where the library says what became of it.
    pub(super) name: Option<&'a str>,
    pub(super) text: &'a str,
    pub(super) failed: bool,
    /// The turn that made the call, as JSON.
    pub(super) turn: &'a str,
}

pub(in crate::wire) const OPENAI_CHAT: Shape = Shape {
    letter: 'c',
    list: "messages",
    user: (r#"{"role":"user","content":"#, "}"),
    model: (r#"{"role":"assistant","content":"#, "}"),
    system: System::Listed((r#"{"role":"system","content":"#, "}")),
    image: (r#"{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:"#, ";base64,", r#""}}]}"#),
    blocks: (r#"{"role":"user","content":["#, "]}"),
    results_are_blocks: false,
    results_adjoin: true,
    result: |answer, out| {
        // A call of the deprecated form has no id but its name.
        let deprecated =
            answer.turn.contains(r#""function_call":{"#) && answer.name.is_none_or(|name| name == answer.call);
        let before: &[u8] =
            if deprecated { br#"{"role":"function","name":"# } else { br#"{"role":"tool","tool_call_id":"# };
        out.extend_from_slice(before);
        quoted(answer.call, out);
        out.extend_from_slice(br#","content":"#);
        quoted(answer.text, out);
        out.push(b'}');
    },
    turn: |turn| match turn {
        Value::Object(mut message) if message.contains_key("tool_calls") || message.contains_key("content") => {
            message.entry("role").or_insert_with(|| "assistant".into());
            Some(vec![message.into()])
        }
        _ => None,
    },
    checks_seals: false,
    keeps_orphans: false,
    calls_follow_user: false,
};

pub(in crate::wire) const OPENAI_RESPONSES: Shape = Shape {
    letter: 'r',
    list: "input",
    user: OPENAI_CHAT.user,
    model: OPENAI_CHAT.model,
    system: System::Field("instructions", (r#"{"role":"system","content":"#, "}")),
    image: (r#"{"role":"user","content":[{"type":"input_image","image_url":"data:"#, ";base64,", r#""}]}"#),
    blocks: OPENAI_CHAT.blocks,
    results_are_blocks: false,
    results_adjoin: false,
    result: output,
    turn: |turn| match turn {
        Value::Array(items) => Some(items),
        Value::Object(mut body) => match body.remove("output") {
            Some(Value::Array(items)) => Some(items),
            _ => body.contains_key("type").then(|| vec![body.into()]),
        },
        _ => None,
    },
    checks_seals: false,
    keeps_orphans: true,
    calls_follow_user: false,
};

pub(in crate::wire) const ANTHROPIC: Shape = Shape {
    letter: 'a',
    list: "messages",
    user: OPENAI_CHAT.user,
    model: OPENAI_CHAT.model,
    system: System::Blocks("system"),
    image: (
        r#"{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":""#,
        r#"","data":""#,
        r#""}}]}"#,
    ),
    blocks: OPENAI_CHAT.blocks,
    results_are_blocks: true,
    results_adjoin: true,
    result: |answer, out| {
        out.extend_from_slice(br#"{"type":"tool_result","tool_use_id":"#);
        quoted(answer.call, out);
        out.extend_from_slice(br#","content":"#);
        quoted(answer.text, out);
        out.extend_from_slice(if answer.failed { br#","is_error":true}"# } else { b"}" });
    },
    turn: |turn| {
        let content = match turn {
            Value::Array(blocks) => blocks,
            Value::Object(mut message) => match message.remove("content") {
                Some(Value::Array(blocks)) => blocks,
                _ if message.contains_key("type") => vec![message.into()],
                _ => return None,
            },
            _ => return None,
        };
        Some(vec![json!({ "role": "assistant", "content": content })])
    },
    checks_seals: true,
    keeps_orphans: false,
    calls_follow_user: false,
};

pub(in crate::wire) const GEMINI: Shape = Shape {
    letter: 'g',
    list: "contents",
    user: (r#"{"role":"user","parts":[{"text":"#, "}]}"),
    model: (r#"{"role":"model","parts":[{"text":"#, "}]}"),
    system: System::Message("systemInstruction"),
    image: (r#"{"role":"user","parts":[{"inlineData":{"mimeType":""#, r#"","data":""#, r#""}}]}"#),
    blocks: (r#"{"role":"user","parts":["#, "]}"),
    results_are_blocks: true,
    results_adjoin: true,
    result: |answer, out| {
        let (name, has_id) = called(answer);
        out.extend_from_slice(br#"{"functionResponse":{"name":"#);
        quoted(&name, out);
        if has_id {
            out.extend_from_slice(br#","id":"#);
            quoted(answer.call, out);
        }
        out.extend_from_slice(if answer.failed { br#","response":{"error":"# } else { br#","response":{"output":"# });
        quoted(answer.text, out);
        out.extend_from_slice(b"}}}");
    },
    turn: |turn| {
        let parts = match turn {
            Value::Array(parts) => Value::Array(parts),
            Value::Object(mut content) => content.remove("parts")?,
            _ => return None,
        };
        Some(vec![json!({ "role": "model", "parts": parts })])
    },
    checks_seals: false,
    keeps_orphans: false,
    calls_follow_user: true,
};

/// The item of Responses that answers a call: each kind of call has its own, and not each takes a text.
fn output(answer: &Answer<'_>, out: &mut Vec<u8>) {
    let Answer { call: id, text, failed, .. } = *answer;
    let made = serde_json::from_str(answer.turn).ok().and_then(OPENAI_RESPONSES.turn).unwrap_or_default();
    let is = |field: &'static str| move |item: &&Value| item.get(field).and_then(Value::as_str) == Some(id);
    let by_id = made.iter().find(is("call_id"));
    let call = by_id.or_else(|| made.iter().find(is("id"))).and_then(|call| call.get("type")).and_then(Value::as_str);
    let mut item = match call {
        Some("custom_tool_call") => json!({ "type": "custom_tool_call_output", "output": text }),
        Some("local_shell_call") => json!({ "type": "local_shell_call_output", "output": text }),
        Some("apply_patch_call") => {
            let status = if failed { "failed" } else { "completed" };
            json!({ "type": "apply_patch_call_output", "status": status, "output": text })
        }
        Some("shell_call") => {
            let outcome = json!({ "type": "exit", "exit_code": i32::from(failed) });
            json!({ "type": "shell_call_output", "output": [{ "stdout": text, "stderr": "", "outcome": outcome }] })
        }
        Some("computer_call") => {
            json!({ "type": "computer_call_output", "output": { "type": "computer_screenshot", "image_url": BLANK } })
        }
        Some("tool_search_call") => json!({ "type": "tool_search_output", "tools": [] }),
        // Consent that nobody gave is not made up.
        Some("mcp_approval_request") => {
            json!({ "type": "mcp_approval_response", "approval_request_id": id, "approve": false, "reason": text })
        }
        _ => json!({ "type": "function_call_output", "output": text }),
    };
    // An approval has another field for it, and a search that the provider ran itself has none.
    if by_id.is_some()
        && let Some(item) = item.as_object_mut()
    {
        item.insert("call_id".to_owned(), id.into());
    }
    frame::write(&item, &[], out);
    if matches!(call, Some("computer_call" | "tool_search_call")) {
        let (before, after) = OPENAI_RESPONSES.user;
        out.push(b',');
        out.extend_from_slice(before.as_bytes());
        quoted(text, out);
        out.extend_from_slice(after.as_bytes());
    }
}

/// A screen with nothing on it: one white pixel.
const BLANK: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAAAABJRU5ErkJggg==";

/// The name of the function that Gemini called, and whether the call has an id: one without is known by its name.
fn called<'a>(answer: &Answer<'a>) -> (Cow<'a, str>, bool) {
    if let Some(name) = answer.name {
        return (name.into(), answer.call != name);
    }
    let made = serde_json::from_str(answer.turn).ok().and_then(GEMINI.turn).unwrap_or_default();
    let mut name = None;
    made.iter().for_each(|content| {
        Gemini::calls(content, &mut |id, of| {
            if id == answer.call {
                name = Some(of.to_owned());
            }
        });
    });
    let name = name.map_or(Cow::Borrowed(answer.call), Cow::Owned);
    let has_id = answer.call != name;
    (name, has_id)
}

/// The name of the format that a frame is of.
pub(super) fn name(letter: char) -> &'static str {
    use crate::{
        tool::{Anthropic, Gemini, OpenAiChat, OpenAiResponses},
        wire::validate::Format,
    };
    match letter {
        'c' => OpenAiChat::NAME,
        'r' => OpenAiResponses::NAME,
        'a' => <Anthropic as Format>::NAME,
        'g' => <Gemini as Format>::NAME,
        _ => "another version",
    }
}
