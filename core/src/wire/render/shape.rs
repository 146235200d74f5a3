//! What the formats look like from outside: what goes around a text that no import gave a frame.

use serde_json::{Value, json};

use crate::wire::frame::quoted;

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
    pub(super) result: fn(&Answer<'_>, &mut Vec<u8>),
    /// What a model's turn that a program pushed as JSON is in the list.
    pub(super) turn: fn(Value) -> Option<Vec<Value>>,
    /// Whether the provider refuses signatures over what changed.
    pub(super) checks_seals: bool,
    /// Whether a call can be where only the provider sees it.
    pub(super) keeps_orphans: bool,
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
    pub(super) name: &'a str,
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
    result: |answer, out| {
        out.extend_from_slice(br#"{"role":"tool","tool_call_id":"#);
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
    result: |answer, out| {
        let custom = answer.turn.contains(r#""custom_tool_call""#);
        let kind: &[u8] = if custom { b"custom_tool_call_output" } else { b"function_call_output" };
        out.extend_from_slice(br#"{"type":""#);
        out.extend_from_slice(kind);
        out.extend_from_slice(br#"","call_id":"#);
        quoted(answer.call, out);
        out.extend_from_slice(br#","output":"#);
        quoted(answer.text, out);
        out.push(b'}');
    },
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
    result: |answer, out| {
        out.extend_from_slice(br#"{"functionResponse":{"name":"#);
        quoted(answer.name, out);
        // A call that had no id is known by its name.
        if answer.call != answer.name {
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
};

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
