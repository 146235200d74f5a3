//! Conversations that nobody recorded, and random programs over them: what is imported comes back as it was, and whatever legal
//! thing happens then, the request that is left is one that the provider takes.

use std::{cell::Cell, collections::BTreeMap, sync::Arc};

use keepspan::{
    Abandonment, Authority, ContextState, Episode, Fallback, FellBack, Finish, FixedTemplate, LargestToolOutput,
    Limits, Message, ModelAnswer, Mutation, NewSpan, OldestFirst, OneByteAToken, Outcome, Report, Role, Shown, SpanId,
    Spans, SummaryText, Window,
    tool::{Answer, Anthropic, Gemini, OpenAiChat, OpenAiResponses},
    wire::{self, Format},
};
use keepspan_tests::{Fault, Faulty};
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use serde_json::{Value, json};

type Checked<T = ()> = Result<T, TestCaseError>;

/// Nothing is protected, so that anything may leave.
#[derive(ContextState)]
struct Loose {
    #[rationale]
    decisions: Spans,
    #[evictable(otherwise)]
    work: Spans,
    #[derived]
    digest: Spans,
}

type Held = Window<Loose, Arc<Faulty>>;

fn episode() -> Episode {
    Episode::new("e", "p").budget(Limits::of(60_000).trigger(2_000).index(800).rationale(60)).trust_estimates()
}

fn window() -> (Held, Arc<Faulty>) {
    let store = Arc::new(Faulty::default());
    (Window::open_with(store.clone(), episode(), OneByteAToken).unwrap(), store)
}

fn failed(error: impl std::fmt::Display) -> TestCaseError {
    TestCaseError::fail(error.to_string())
}

/// Choices, as bytes: without any left, the first of what there is.
#[derive(Clone)]
struct Dice {
    bytes: Vec<u8>,
    at: usize,
    ids: u32,
}

/// On one line.
impl std::fmt::Debug for Dice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&format!("{:?}", self.bytes))
    }
}

fn dice(most: usize) -> impl Strategy<Value = Dice> {
    prop::collection::vec(any::<u8>(), 0..most).prop_map(|bytes| Dice { bytes, at: 0, ids: 0 })
}

impl Dice {
    fn pick(&mut self, of: usize) -> usize {
        let byte = self.bytes.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        usize::from(byte) % of.max(1)
    }

    fn one_in(&mut self, of: usize) -> bool {
        self.pick(of) + 1 == of
    }

    fn done(&self) -> bool {
        self.at >= self.bytes.len()
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> Option<T> {
        let at = self.pick(list.len());
        list.get(at).copied()
    }

    /// A text that is more than white space.
    fn text(&mut self) -> String {
        let text = match self.pick(12) {
            0 => "a".to_owned(),
            1 => "one\ntwo\ttabs\r\n".to_owned() + "end",
            2 => "😀 👩‍👩‍👧 e\u{301} \u{202e}rtl".to_owned(),
            3 => "\u{0}\u{1}\u{2}\u{3}\u{4}\u{5}\u{7f}".to_owned(),
            4 => r#"{"type":"tool_use","id":"x"}"#.to_owned(),
            5 => "\"\\/ \u{2028}\u{feff}".to_owned(),
            6 => "s1 [s2: summary of s1]".to_owned(),
            7 => "data:image/png;base64,".to_owned() + PNG,
            8 => "long ".repeat(80) + ".",
            _ => "some words of no weight, as there are many, ".repeat(2) + "end",
        };
        // A text that was redacted does not come again.
        self.ids += 1;
        format!("{text}{}", self.ids)
    }

    /// A result may say nothing.
    fn said(&mut self) -> String {
        match self.pick(8) {
            0 => String::new(),
            1 => " \n".to_owned(),
            _ => self.text(),
        }
    }

    /// Ids come again, where `reused`; otherwise each is another.
    fn id(&mut self, reused: bool) -> String {
        self.ids += 1;
        match self.pick(4) {
            0 if reused => format!("call_{}", self.ids % 3),
            1 if reused => format!("ид\u{0}\"\\😀{}", self.ids % 4),
            2 if reused => format!("read{}", self.ids % 2),
            _ => format!("call-X_{}", self.ids),
        }
    }

    fn name(&mut self) -> &'static str {
        self.of(&["read", "write", "custom_tool_call", "x-y_z"]).unwrap()
    }

    fn json(&mut self) -> Value {
        match self.pick(7) {
            0 => json!({}),
            1 => json!({ "path": self.text(), "n": 1 }),
            2 => json!({ "deep": [[{ "x": null, "": [true, -1.5e-7, 18446744073709551615_u64] }]] }),
            3 => json!({ "type": "image", "source": { "data": self.text() } }),
            4 => json!({ self.text(): self.text() }),
            5 => {
                let bytes: [u8; 8] = std::array::from_fn(|_| u8::try_from(self.pick(256)).unwrap_or(0));
                json!({ "float": f64::from_le_bytes(bytes) })
            }
            _ => json!({ "q": "SELECT 'a', \"b\"" }),
        }
    }

    /// In any order.
    fn shuffle<T>(&mut self, list: &mut [T]) {
        for at in (1..list.len()).rev() {
            list.swap(at, self.pick(at + 1));
        }
    }
}

/// One pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn data_url() -> String {
    format!("data:image/png;base64,{PNG}")
}

/// A format, and conversations of it.
trait Spoken: Format {
    const HISTORY: &'static str;
    const ASIDE: Option<&'static str> = None;
    /// Of unknown type, in the list or among a user's blocks.
    const UNKNOWN: &'static str = "of_tomorrow";

    /// System text beside the list.
    fn aside(_dice: &mut Dice) -> Option<Value> {
        None
    }

    /// What comes next: one element of the list, or a turn with all its results.
    fn next(dice: &mut Dice) -> Vec<Value>;

    /// Of a hand-made turn: its JSON with these calls, each with an id and a name.
    fn by_hand(calls: &[(String, &str)]) -> Value;

    /// Signed blocks of a rendered or imported list.
    fn signed(_list: &Value) -> Vec<&Value> {
        Vec::new()
    }
}

fn body<F: Spoken>(dice: &mut Dice) -> Value {
    let mut list = Vec::new();
    let aside = F::aside(dice);
    list.extend(F::next(&mut Dice { bytes: Vec::new(), ..dice.clone() }));
    while !dice.done() && list.len() < 40 {
        list.extend(F::next(dice));
    }
    let mut body = json!({ F::HISTORY: list });
    if let (Some(field), Some(aside)) = (F::ASIDE, aside) {
        body[field] = aside;
    }
    body
}

fn chat_parts(dice: &mut Dice, kind: &str) -> Value {
    let count = 1 + dice.pick(3);
    let parts = (0..count).map(|_| match (kind, dice.pick(6)) {
        ("user", 0) => json!({ "type": "image_url", "image_url": { "url": data_url(), "detail": "low" } }),
        ("user", 1) => json!({ "type": "image_url", "image_url": { "url": "https://a.b/c.png" } }),
        ("user", 2) => json!({ "type": "file", "file": { "file_data": "data:application/pdf;base64,JVBERi0xLjQ=", "filename": "ü.pdf" } }),
        ("user", 3) => json!({ "type": OpenAiChat::UNKNOWN, "what": dice.json() }),
        _ => json!({ "type": "text", "text": dice.text() }),
    });
    parts.collect()
}

impl Spoken for OpenAiChat {
    const HISTORY: &'static str = "messages";

    fn next(dice: &mut Dice) -> Vec<Value> {
        let content = |dice: &mut Dice, kind: &str| {
            if dice.one_in(3) { chat_parts(dice, kind) } else { dice.text().into() }
        };
        match dice.pick(9) {
            0 | 1 => {
                let mut message = json!({ "role": "user", "content": content(dice, "user") });
                if dice.one_in(4) {
                    message["name"] = "Zoë".into();
                }
                vec![message]
            }
            2 => vec![json!({ "role": dice.of(&["system", "developer"]), "content": content(dice, "system") })],
            3 => vec![json!({ "role": "assistant", "content": content(dice, "assistant"), "refusal": null })],
            4 => vec![json!({ "role": "assistant", "content": null, "refusal": dice.text() })],
            _ => {
                let count = 1 + dice.pick(4);
                let mut ids = Vec::new();
                let calls: Vec<_> = (0..count)
                    .map(|_| {
                        let mut id = dice.id(true);
                        while ids.contains(&id) {
                            id.push('+');
                        }
                        ids.push(id.clone());
                        if dice.one_in(4) {
                            json!({ "id": id, "type": "custom", "custom": { "name": dice.name(), "input": dice.text() } })
                        } else {
                            json!({ "id": id, "type": "function",
                                "function": { "name": dice.name(), "arguments": dice.json().to_string() } })
                        }
                    })
                    .collect();
                let mut turn = json!({ "role": "assistant", "tool_calls": calls });
                match dice.pick(4) {
                    0 => turn["content"] = Value::Null,
                    1 => turn["content"] = dice.said().into(),
                    2 => turn["reasoning_content"] = dice.text().into(),
                    _ => turn["content"] = chat_parts(dice, "assistant"),
                }
                let mut results: Vec<_> = ids
                    .iter()
                    .map(|id| {
                        let content = if dice.one_in(3) { chat_parts(dice, "tool") } else { dice.said().into() };
                        json!({ "role": "tool", "tool_call_id": id, "content": content })
                    })
                    .collect();
                dice.shuffle(&mut results);
                [vec![turn], results].concat()
            }
        }
    }

    fn by_hand(calls: &[(String, &str)]) -> Value {
        let call = |(id, name): &(String, &str)| json!({ "id": id, "type": "function", "function": { "name": name, "arguments": "{}" } });
        json!({ "content": null, "tool_calls": calls.iter().map(call).collect::<Vec<_>>() })
    }
}

fn input_parts(dice: &mut Dice) -> Value {
    let count = 1 + dice.pick(3);
    let parts = (0..count).map(|_| match dice.pick(6) {
        0 => json!({ "type": "input_image", "image_url": data_url() }),
        1 => json!({ "type": "input_image", "detail": "auto", "file_id": "file-1" }),
        2 => json!({ "type": "input_file", "filename": "a", "file_data": "JVBERi0xLjQ=" }),
        3 => json!({ "type": OpenAiResponses::UNKNOWN, "what": dice.json() }),
        _ => json!({ "type": "input_text", "text": dice.text() }),
    });
    parts.collect()
}

impl Spoken for OpenAiResponses {
    const HISTORY: &'static str = "input";
    const ASIDE: Option<&'static str> = Some("instructions");

    fn aside(dice: &mut Dice) -> Option<Value> {
        dice.one_in(2).then(|| dice.text().into())
    }

    fn next(dice: &mut Dice) -> Vec<Value> {
        let n = {
            dice.ids += 1;
            dice.ids
        };
        match dice.pick(12) {
            0 => vec![json!({ "role": "user", "content": dice.text() })],
            1 => vec![json!({ "type": "message", "role": "user", "content": input_parts(dice) })],
            2 => vec![
                json!({ "role": dice.of(&["system", "developer"]), "content": [{ "type": "input_text", "text": dice.text() }, { "type": "input_text", "text": dice.text() }] }),
            ],
            3 => vec![json!({ "type": "message", "id": format!("msg_{n}"), "role": "assistant", "status": "completed",
                "content": [{ "type": "output_text", "text": dice.text(), "annotations": [] }] })],
            4 => vec![json!({ "type": "compaction", "id": format!("cmp_{n}"), "encrypted_content": dice.text() })],
            5 => vec![json!({ "type": OpenAiResponses::UNKNOWN, "what": dice.json() })],
            6 => vec![
                json!({ "type": "reasoning", "id": format!("rs_{n}"), "summary": [], "encrypted_content": dice.text() }),
                json!({ "type": "web_search_call", "id": format!("ws_{n}"), "status": "completed", "action": { "type": "search", "query": dice.text() } }),
                json!({ "type": "message", "id": format!("msg_{n}"), "role": "assistant", "content": [{ "type": "output_text", "text": dice.text() }] }),
            ],
            _ => {
                let mut turn = Vec::new();
                let with_ids = dice.one_in(2);
                if with_ids && dice.one_in(2) {
                    turn.push(json!({ "type": "reasoning", "id": format!("rs_{n}"), "summary": [{ "type": "summary_text", "text": dice.text() }] }));
                }
                let mut results = Vec::new();
                let mut used = Vec::new();
                for at in 0..=dice.pick(4) {
                    let mut id = dice.id(true);
                    while used.contains(&id) {
                        id.push('+');
                    }
                    used.push(id.clone());
                    let (mut call, result) = match dice.pick(7) {
                        0 => (
                            json!({ "type": "custom_tool_call", "call_id": id, "name": dice.name(), "input": dice.text() }),
                            json!({ "type": "custom_tool_call_output", "call_id": id, "output": dice.said() }),
                        ),
                        1 => (
                            json!({ "type": "computer_call", "call_id": id, "action": { "type": "click" }, "status": "completed" }),
                            json!({ "type": "computer_call_output", "call_id": id, "output": { "type": "computer_screenshot", "image_url": data_url() } }),
                        ),
                        2 => (
                            json!({ "type": "shell_call", "call_id": id, "action": { "commands": ["ls"] } }),
                            json!({ "type": "shell_call_output", "call_id": id, "output": [{ "stdout": dice.said(), "stderr": "", "outcome": { "type": "exit", "exit_code": 0 } }] }),
                        ),
                        3 => (
                            json!({ "type": "apply_patch_call", "call_id": id, "operation": { "type": "delete_file", "path": "x" }, "status": "completed" }),
                            json!({ "type": "apply_patch_call_output", "call_id": id, "status": "completed", "output": dice.said() }),
                        ),
                        _ => {
                            let output = match dice.pick(3) {
                                0 => json!([{ "type": "input_text", "text": dice.said() }]),
                                1 => {
                                    json!([{ "type": "input_image", "image_url": data_url() }, { "type": "input_text", "text": "x" }])
                                }
                                _ => dice.said().into(),
                            };
                            (
                                json!({ "type": "function_call", "call_id": id, "name": dice.name(), "arguments": dice.json().to_string() }),
                                json!({ "type": "function_call_output", "call_id": id, "output": output }),
                            )
                        }
                    };
                    if with_ids {
                        call["id"] = format!("fc_{n}_{at}").into();
                    }
                    turn.push(call);
                    results.push(result);
                }
                dice.shuffle(&mut results);
                // A result may come at any time after its call.
                if dice.one_in(3) {
                    results.insert(0, json!({ "role": "user", "content": dice.text() }));
                }
                if dice.one_in(3) {
                    turn.push(json!({ "type": "mcp_list_tools", "id": format!("mcpl_{n}"), "server_label": "x", "tools": [] }));
                }
                [turn, results].concat()
            }
        }
    }

    fn by_hand(calls: &[(String, &str)]) -> Value {
        let call = |(at, (id, name)): (usize, &(String, &str))| match at % 2 {
            0 => json!({ "type": "function_call", "call_id": id, "name": name, "arguments": "{}" }),
            _ => json!({ "type": "custom_tool_call", "call_id": id, "name": name, "input": "in" }),
        };
        calls.iter().enumerate().map(call).collect()
    }

    fn signed(list: &Value) -> Vec<&Value> {
        list.as_array().into_iter().flatten().filter(|item| item["type"] == "reasoning").collect()
    }
}

fn anthropic_blocks(dice: &mut Dice, role: &str) -> Vec<Value> {
    let count = 1 + dice.pick(3);
    let parts = (0..count).map(|_| match (role, dice.pick(7)) {
        ("user", 0) => json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": PNG } }),
        ("user", 1) => json!({ "type": "image", "source": { "type": "url", "url": "https://a.b/c.png" } }),
        ("user", 2) => json!({ "type": "document", "title": dice.text(), "source": { "type": "text", "media_type": "text/plain", "data": dice.text() } }),
        ("user", 3) => json!({ "type": Anthropic::UNKNOWN, "what": dice.json() }),
        (_, 4) => json!({ "type": "text", "text": dice.text(), "cache_control": { "type": "ephemeral" } }),
        _ => json!({ "type": "text", "text": dice.text() }),
    });
    parts.collect()
}

impl Spoken for Anthropic {
    const HISTORY: &'static str = "messages";
    const ASIDE: Option<&'static str> = Some("system");

    fn aside(dice: &mut Dice) -> Option<Value> {
        match dice.pick(4) {
            0 => Some(dice.text().into()),
            1 => Some(anthropic_blocks(dice, "system").into()),
            _ => None,
        }
    }

    fn next(dice: &mut Dice) -> Vec<Value> {
        match dice.pick(10) {
            0 => vec![json!({ "role": "user", "content": dice.text() })],
            1 => vec![json!({ "role": "user", "content": anthropic_blocks(dice, "user") })],
            2 => vec![
                json!({ "role": "assistant", "content": dice.text() }),
                json!({ "role": "user", "content": "go on" }),
            ],
            3 => vec![json!({ "role": "system", "content": anthropic_blocks(dice, "system") })],
            4 => {
                let id = dice.id(false);
                vec![
                    json!({ "role": "assistant", "content": [
                        { "type": "server_tool_use", "id": id, "name": "web_search", "input": dice.json() },
                        { "type": "web_search_tool_result", "tool_use_id": id, "content": [{ "type": "web_search_result", "url": "u", "title": "t", "encrypted_content": dice.text() }] },
                        { "type": "text", "text": dice.text(), "citations": [] },
                    ] }),
                    json!({ "role": "user", "content": "thanks" }),
                ]
            }
            5 => vec![
                json!({ "role": "assistant", "content": [{ "type": dice.of(&["compaction", Anthropic::UNKNOWN]), "content": dice.text() }] }),
                json!({ "role": "user", "content": "on" }),
            ],
            _ => {
                let mut blocks = Vec::new();
                match dice.pick(4) {
                    0 => blocks.push(json!({ "type": "thinking", "thinking": dice.said(), "signature": dice.text() })),
                    1 => blocks.push(json!({ "type": "redacted_thinking", "data": dice.text() })),
                    _ => {}
                }
                if dice.one_in(2) {
                    blocks.push(json!({ "type": "text", "text": dice.text() }));
                }
                let mut results = Vec::new();
                for _ in 0..=dice.pick(4) {
                    let id = dice.id(false);
                    blocks.push(json!({ "type": "tool_use", "id": id, "name": dice.name(), "input": dice.json() }));
                    let mut result = json!({ "type": "tool_result", "tool_use_id": id });
                    match dice.pick(6) {
                        0 => {}
                        1 => result["content"] = json!([]),
                        2 => {
                            result["content"] = json!([{ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": PNG } }])
                        }
                        3 => result["content"] = anthropic_blocks(dice, "tool").into(),
                        _ => result["content"] = dice.said().into(),
                    }
                    if dice.one_in(3) {
                        result["is_error"] = true.into();
                    }
                    results.push(result);
                }
                dice.shuffle(&mut results);
                if dice.one_in(3) {
                    results.extend(anthropic_blocks(dice, "user"));
                }
                vec![json!({ "role": "assistant", "content": blocks }), json!({ "role": "user", "content": results })]
            }
        }
    }

    fn by_hand(calls: &[(String, &str)]) -> Value {
        let call = |(id, name): &(String, &str)| json!({ "type": "tool_use", "id": id, "name": name, "input": {} });
        calls.iter().map(call).collect()
    }

    fn signed(list: &Value) -> Vec<&Value> {
        let messages = list.as_array().into_iter().flatten();
        let blocks = messages.filter_map(|message| message["content"].as_array()).flatten();
        blocks.filter(|block| matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"))).collect()
    }
}

fn gemini_parts(dice: &mut Dice) -> Vec<Value> {
    let count = 1 + dice.pick(3);
    let parts = (0..count).map(|_| match dice.pick(6) {
        0 => json!({ "inlineData": { "mimeType": "image/png", "data": PNG } }),
        1 => json!({ "file_data": { "mime_type": "video/mp4", "file_uri": "gs://x" } }),
        2 => json!({ Gemini::UNKNOWN: dice.json() }),
        _ => json!({ "text": dice.text() }),
    });
    parts.collect()
}

impl Spoken for Gemini {
    const HISTORY: &'static str = "contents";
    const ASIDE: Option<&'static str> = Some("systemInstruction");
    const UNKNOWN: &'static str = "ofTomorrow";

    fn aside(dice: &mut Dice) -> Option<Value> {
        match dice.pick(4) {
            0 => Some(json!({ "parts": [{ "text": dice.text() }] })),
            1 => Some(json!({ "role": "system", "parts": [{ "text": dice.text() }, { "text": dice.text() }] })),
            2 => Some(match dice.pick(3) {
                0 => json!({ "parts": [] }),
                1 => json!({ "parts": { "text": dice.text() } }),
                _ => dice.text().into(),
            }),
            _ => None,
        }
    }

    fn next(dice: &mut Dice) -> Vec<Value> {
        match dice.pick(8) {
            0 | 1 => vec![json!({ "role": "user", "parts": gemini_parts(dice) })],
            2 => vec![json!({ "parts": [{ "text": dice.said() }] })],
            3 => vec![
                json!({ "role": "model", "parts": [{ "text": dice.text(), "thought": true }, { "text": dice.said(), "thoughtSignature": "c2ln" }] }),
                json!({ "role": "user", "parts": [{ "text": dice.text() }] }),
            ],
            4 => vec![
                json!({ "role": "model", "parts": [{ "executableCode": { "language": "PYTHON", "code": dice.text() } }, { Gemini::UNKNOWN: 1 }] }),
                json!({ "role": "user", "parts": [{ "text": "on" }] }),
            ],
            _ => {
                let (ids, back, sign) = (dice.pick(3), dice.one_in(2), dice.one_in(2));
                let mut parts = Vec::new();
                let mut results = Vec::new();
                if dice.one_in(3) {
                    parts.push(json!({ "text": dice.text() }));
                }
                let more = dice.pick(4);
                for at in 0..=more {
                    let name = dice.name();
                    let mut call = json!({ "name": name, "args": dice.json() });
                    let mut response = json!({ "name": name, "response": match dice.pick(4) {
                        0 => json!({ "output": dice.said() }),
                        1 => json!({ "error": dice.text() }),
                        2 => json!({ "result": [1, { "x": dice.text() }] }),
                        _ => json!({}),
                    } });
                    if ids > 0 {
                        dice.ids += 1;
                        call["id"] =
                            format!("g{}", if ids == 1 { dice.ids } else { u32::try_from(at).unwrap() }).into();
                        if back || more > 0 {
                            response["id"] = call["id"].clone();
                        }
                    }
                    let snake = dice.one_in(5);
                    let (called, answered) = if snake {
                        ("function_call", "function_response")
                    } else {
                        ("functionCall", "functionResponse")
                    };
                    let mut part = json!({ called: call });
                    if at == 0 && sign {
                        part["thoughtSignature"] = "c2lnbmF0dXJl".into();
                    }
                    parts.push(part);
                    results.push(json!({ answered: response }));
                }
                dice.shuffle(&mut results);
                if dice.one_in(3) {
                    results.push(json!({ "text": dice.text() }));
                }
                vec![
                    json!({ "role": "model", "parts": parts }),
                    json!({ "role": "user", "parts": results }),
                    json!({ "role": "user", "parts": [{ "text": "next" }] }),
                ]
            }
        }
    }

    fn by_hand(calls: &[(String, &str)]) -> Value {
        let call = |(id, name): &(String, &str)| json!({ "functionCall": { "id": id, "name": name, "args": {} } });
        calls.iter().map(call).collect()
    }

    fn signed(list: &Value) -> Vec<&Value> {
        let parts = list.as_array().into_iter().flatten().filter_map(|content| content["parts"].as_array()).flatten();
        parts.filter(|part| part.get("thoughtSignature").is_some()).collect()
    }
}

/// The part of a body that is history.
fn history<F: Spoken>(body: &Value) -> Value {
    let mut history = json!({ F::HISTORY: body[F::HISTORY] });
    if let Some(aside) = F::ASIDE.filter(|aside| body.get(*aside).is_some()) {
        history[aside] = body[aside].clone();
    }
    history
}

/// What is imported comes back.
fn comes_back<F: Spoken>(format: F, body: &Value) -> Checked<Held> {
    let (mut window, _) = window();
    let imported = window.lanes().import(format, body).map_err(|error| failed(format!("{error}\n{body}")))?;
    let rendered = window.render_for(format).map_err(failed)?;
    prop_assert_eq!(rendered.to_value(), history::<F>(body));
    prop_assert_eq!(serde_json::from_str::<Value>(rendered.history()).map_err(failed)?, body[F::HISTORY].clone());
    prop_assert!(rendered.unsealed().is_empty());
    prop_assert_eq!(imported.orphans, window.orphans());
    prop_assert_eq!(imported.elsewhere, None);
    Ok(window)
}

fn many(cases: u32, size: usize, each: impl Fn(Dice) -> Checked) {
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(cases) });
    runner.run(&dice(size), each).unwrap_or_else(|error| panic!("{error}"));
}

fn generated_come_back<F: Spoken>(format: F) {
    many(500, 250, |mut dice| {
        let body = body::<F>(&mut dice);
        wire::validate(format, &body).map_err(|error| failed(format!("{error}\n{body}")))?;
        let window = comes_back(format, &body)?;
        prop_assert!(window.orphans().is_empty(), "{:?}\n{body}", window.orphans());
        prop_assert!(window.open_calls().is_empty(), "{:?}\n{body}", window.open_calls());
        Ok(())
    });
}

#[test]
fn generated_conversations_come_back_as_they_were_chat() {
    generated_come_back(OpenAiChat);
}

#[test]
fn generated_conversations_come_back_as_they_were_responses() {
    generated_come_back(OpenAiResponses);
}

#[test]
fn generated_conversations_come_back_as_they_were_anthropic() {
    generated_come_back(Anthropic);
}

#[test]
fn generated_conversations_come_back_as_they_were_gemini() {
    generated_come_back(Gemini);
}

/// What a program knows of its window.
struct Known {
    store: Arc<Faulty>,
    /// What is kept verbatim, by its span.
    opaque: BTreeMap<SpanId, Value>,
    signed: Vec<Value>,
    reports: Vec<Report>,
    late: Vec<String>,
    calls: u32,
    /// What was shown and sent when every call had its result.
    before: Option<(Vec<Message>, String)>,
}

/// Things that happened in all programs, to see that they do.
type Seen = std::cell::RefCell<BTreeMap<&'static str, u32>>;

fn see(seen: &Seen, what: &'static str) {
    *seen.borrow_mut().entry(what).or_default() += 1;
}

fn mutation() -> Mutation {
    Mutation::new("a secret", "ask for it again").unwrap()
}

fn summary() -> SummaryText {
    SummaryText::try_from(ModelAnswer::new(Finish::Stop, "in short")).unwrap()
}

/// Every span that is shown as itself.
fn resident(window: &Held) -> Vec<SpanId> {
    window
        .render()
        .iter()
        .filter_map(|message| if let Shown::Span(span) = message.shown() { Some(span) } else { None })
        .collect()
}

fn import<F: Spoken>(format: F, window: &mut Held, known: &mut Known, json: &Value) -> Checked {
    let imported = window.lanes().import(format, json).map_err(|error| failed(format!("{error}\n{json}")))?;
    for message in window.render() {
        if let Shown::Span(span) = message.shown()
            && imported.opaque.contains(&span)
        {
            let text = message.content().as_text().unwrap_or_default().to_owned();
            known.opaque.insert(span, serde_json::from_str(&text).map_err(failed)?);
        }
    }
    let list = json.get(F::HISTORY).unwrap_or(json);
    known.signed.extend(F::signed(list).into_iter().cloned());
    Ok(())
}

/// Neither a pass nor a fallback took what nobody here can read.
fn opaque_stays(window: &Held, known: &Known, before: &[SpanId]) -> Checked {
    let after = resident(window);
    let taken = known.opaque.keys().find(|span| before.contains(span) && !after.contains(span));
    prop_assert_eq!(taken, None);
    Ok(())
}

fn step<F: Spoken>(format: F, window: &mut Held, known: &mut Known, dice: &mut Dice, seen: &Seen) -> Checked {
    let what = dice.pick(22);
    let before = resident(window);
    match what {
        0 => {
            let Ok(lanes) = window.lanes().externalize().wait() else { return Ok(()) };
            let many = 1 + dice.pick(6);
            let some: Vec<_> = lanes.work.resident().into_iter().take(many).collect();
            lanes.work.evict(some).wait().is_ok().then(|| see(seen, "oldest evicted"));
        }
        1 | 2 => {
            let Ok(lanes) = window.lanes().externalize().wait() else { return Ok(()) };
            let Some(span) = dice.of(&lanes.work.resident()) else { return Ok(()) };
            lanes.work.evict(span).wait().is_ok().then(|| see(seen, "evicted"));
        }
        3 => {
            let Ok(lanes) = window.lanes().externalize().wait() else { return Ok(()) };
            let Some(span) = dice.of(&lanes.work.evicted()) else { return Ok(()) };
            lanes.work.restore(span).wait().is_ok().then(|| see(seen, "restored"));
        }
        4 | 5 => {
            let Ok(lanes) = window.lanes().externalize().wait() else { return Ok(()) };
            let all = lanes.work.resident();
            let first = dice.pick(all.len());
            for many in 1..=6 {
                let some: Vec<_> = all.iter().copied().skip(first).step_by(1 + dice.pick(2)).take(many).collect();
                let opaque = some.iter().any(|span| known.opaque.contains_key(span));
                let summarized = lanes.work.summarize(some, summary(), &lanes.digest).wait();
                prop_assert!(!opaque || summarized.is_err());
                if summarized.is_ok() {
                    see(seen, "summarized");
                    break;
                }
            }
        }
        6 => {
            let Ok(lanes) = window.lanes().externalize().wait() else { return Ok(()) };
            let Some(span) = dice.of(&lanes.digest.resident()) else { return Ok(()) };
            lanes.digest.reground(span).wait().is_ok().then(|| see(seen, "regrounded"));
        }
        7 => {
            let Ok(lanes) = window.lanes().externalize().wait() else { return Ok(()) };
            let Some(span) = dice.of(&before) else { return Ok(()) };
            lanes.work.redact(span, mutation()).wait().is_ok().then(|| see(seen, "redacted"));
        }
        8 => {
            let Some(span) = dice.of(&before) else { return Ok(()) };
            let owner = Authority::of("owner").map_err(failed)?;
            window.redact_protected(span, mutation(), owner).wait().is_ok().then(|| see(seen, "redacted by its owner"));
        }
        9 => {
            let lanes = window.lanes();
            let Some(span) = dice.of(&lanes.work.resident()) else { return Ok(()) };
            lanes.work.discard(span, mutation()).wait().is_ok().then(|| see(seen, "discarded"));
        }
        10 => {
            let text = dice.text();
            let span = match dice.pick(3) {
                0 => NewSpan::human(text),
                1 => NewSpan::notice(text),
                _ => NewSpan::notice(text).role(Role::User),
            };
            window.lanes().work.push(span).map_err(failed)?;
        }
        11 | 12 => {
            let calls: Vec<_> = (0..=dice.pick(3))
                .map(|_| {
                    known.calls += 1;
                    (format!("hand_{}", known.calls), dice.name())
                })
                .collect();
            // Providers have no model speak twice.
            window.lanes().work.push(NewSpan::human(dice.text())).map_err(failed)?;
            let ids: Vec<_> = calls.iter().map(|(id, _)| id.as_str()).collect();
            window.lanes().work.push(NewSpan::model(F::by_hand(&calls)).calls(ids)).map_err(failed)?;
            for (id, name) in &calls {
                if dice.one_in(3) {
                    continue;
                }
                let result = NewSpan::tool(*name, dice.text()).answers(id.as_str());
                window.lanes().work.push(if dice.one_in(3) { result.failed() } else { result }).map_err(failed)?;
            }
            see(seen, "turn pushed");
        }
        13 => {
            let open = window.open_calls();
            let Some(at) = open.get(dice.pick(open.len())) else { return Ok(()) };
            let span = NewSpan::tool("read", dice.text());
            let span = match dice.pick(3) {
                0 => span.interim(at.call.clone()),
                1 => span.failed().answers(at.call.clone()),
                _ => span.answers(at.call.clone()),
            };
            window.lanes().work.push(span).map_err(failed)?;
            see(seen, "result pushed");
        }
        14 => {
            let open = window.open_calls();
            let Some(at) = open.get(dice.pick(open.len())) else { return Ok(()) };
            let (span, call) = (at.span, at.call.clone());
            if window.abandon(span, call.clone(), Abandonment::because("it died").map_err(failed)?).wait().is_ok() {
                known.late.push(call.to_string());
                see(seen, "abandoned");
            }
        }
        15 => {
            let span = match known.late.pop() {
                Some(call) => NewSpan::tool("read", dice.text()).answers(call),
                None => NewSpan::tool("read", dice.text()).orphan("of nowhere"),
            };
            window.lanes().work.push(span).map_err(failed)?;
            see(seen, "late or orphan");
        }
        16 => {
            let Ok(lanes) = window.lanes().externalize().wait() else { return Ok(()) };
            fn fall<B: Fallback>(
                lanes: keepspan::Lanes<'_, Loose, Arc<Faulty>, keepspan::rule::Externalized>,
                b: B,
            ) -> Option<FellBack> {
                match lanes.admit() {
                    Ok(pass) => pass.fall_back(b).wait().ok(),
                    Err(refusal) => refusal.fall_back(b).wait().ok(),
                }
            }
            let fell = match dice.pick(3) {
                0 => fall(lanes, OldestFirst),
                1 => fall(lanes, LargestToolOutput),
                _ => fall(lanes, FixedTemplate),
            };
            if let Some(FellBack::Freed(report)) = fell {
                known.reports.push(report);
                see(seen, "fell back");
            }
            opaque_stays(window, known, &before)?;
        }
        17 | 18 => {
            let Ok(lanes) = window.lanes().externalize().wait() else { return Ok(()) };
            let Ok(pass) = lanes.admit() else { return Ok(()) };
            let offered: Vec<_> = pass.index().offers().iter().map(keepspan::Offer::span).collect();
            prop_assert!(offered.iter().all(|span| !known.opaque.contains_key(span)));
            let (take, rest) = (dice.pick(4), dice.pick(3));
            let names = |spans: &mut dyn Iterator<Item = &SpanId>| spans.map(ToString::to_string).collect::<Vec<_>>();
            let mut answer = Answer::prune(names(&mut offered.iter().take(take))).with_rationale("done ");
            if rest > 0 {
                answer = answer.summarize(names(&mut offered.iter().skip(take).take(rest)), "in short");
            }
            if let Some(span) = known.opaque.keys().find(|span| before.contains(span))
                && dice.one_in(3)
            {
                prop_assert!(pass.parse(&Answer::prune([span.to_string()])).is_err());
            }
            let Ok(proposal) = pass.parse(&answer) else { return Ok(()) };
            if let Ok(Outcome::Pruned(report)) = pass.apply(proposal).wait() {
                known.reports.push(report);
                see(seen, "pass");
            }
            opaque_stays(window, known, &before)?;
        }
        19 => {
            let Some(report) = known.reports.pop() else { return Ok(()) };
            window.undo(&report).wait().is_ok().then(|| see(seen, "undone"));
        }
        20 => {
            let again = if dice.one_in(2) {
                // A commit without an answer.
                known.store.arm(1, Fault::Unacknowledged);
                let pushed = window.lanes().work.push(NewSpan::human(dice.text()));
                let done = window.lanes().externalize().wait().is_ok();
                known.store.arm(0, Fault::Fails);
                prop_assert!(!done && pushed.is_ok());
                let before = window.render_for(format).map_err(failed)?;
                window.recover().map_err(failed)?;
                see(seen, "recovered");
                before
            } else {
                if window.lanes().externalize().wait().is_err() {
                    return Ok(());
                }
                let before = window.render_for(format).map_err(failed)?;
                *window = Window::resume_with(known.store.clone(), episode(), OneByteAToken).map_err(failed)?;
                see(seen, "resumed");
                before
            };
            // The same text was redacted elsewhere, and enters again as a notice.
            let after = window.render_for(format).map_err(failed)?;
            prop_assert!(
                again == after || after.body().contains("has its text sealed"),
                "{}\n{}",
                again.body(),
                after.body()
            );
        }
        _ => {
            let next = F::next(dice);
            import(format, window, known, &next.into())?;
            see(seen, "imported");
        }
    }
    Ok(())
}

fn judged<F: Spoken>(format: F, window: &Held, known: &mut Known) -> Checked {
    let rendered = window.render_for(format).map_err(failed)?;
    if !window.open_calls().is_empty() {
        return Ok(());
    }
    let body = rendered.to_value();
    if let Err(invalid) = wire::validate(format, &body) {
        return Err(failed(format!("{invalid}\n{}", rendered.body())));
    }
    let messages = window.render();
    if let Some((shown, sent)) = &known.before {
        let same = |(one, other): (&Message, &Message)| {
            (one.shown(), one.content(), one.seal_intact()) == (other.shown(), other.content(), other.seal_intact())
        };
        if shown.len() <= messages.len() && shown.iter().zip(&messages).all(same) && sent.starts_with('[') {
            // Only the list's end is another, and that of a message whose blocks go on.
            let end = sent.trim_end_matches(']').len();
            prop_assert!(rendered.history().starts_with(&sent[..end]), "{sent}\n{}", rendered.history());
        }
    }
    known.before = Some((messages.clone(), rendered.history().to_owned()));
    for message in &messages {
        if let Shown::Span(span) = message.shown()
            && let Some(block) = known.opaque.get(&span)
        {
            prop_assert!(
                rendered.body().contains(&block.to_string()),
                "{span} is not there verbatim\n{}",
                rendered.body()
            );
        }
    }
    let signed = F::signed(&body[F::HISTORY]);
    prop_assert!(signed.iter().all(|block| known.signed.contains(block)), "{}", rendered.body());
    let intact = messages.iter().filter(|message| message.seal_intact() == Some(true)).count();
    prop_assert!(signed.len() >= intact);
    Ok(())
}

fn program<F: Spoken>(format: F, dice: &mut Dice, seen: &Seen) -> Checked {
    let (mut window, store) = window();
    let mut known = Known {
        store,
        opaque: BTreeMap::new(),
        signed: Vec::new(),
        reports: Vec::new(),
        late: Vec::new(),
        calls: 0,
        before: None,
    };
    let mut beginning = Dice { bytes: dice.bytes.iter().copied().take(60).collect(), at: 0, ids: 0 };
    let body = body::<F>(&mut beginning);
    (dice.at, dice.ids) = (60, beginning.ids);
    import(format, &mut window, &mut known, &body)?;
    while !dice.done() {
        step(format, &mut window, &mut known, dice, seen)?;
        judged(format, &window, &mut known)?;
    }
    while let Some(open) = window.open_calls().first() {
        let call = open.call.clone();
        window.lanes().work.push(NewSpan::tool("read", dice.text()).answers(call)).map_err(failed)?;
    }
    judged(format, &window, &mut known)
}

fn programs<F: Spoken>(format: F) {
    let seen = Seen::default();
    many(800, 200, |mut dice| program(format, &mut dice, &seen));
    println!("{:?}", seen.borrow());
    let all = [
        "oldest evicted",
        "evicted",
        "restored",
        "summarized",
        "regrounded",
        "redacted",
        "redacted by its owner",
        "discarded",
        "turn pushed",
        "result pushed",
        "abandoned",
        "late or orphan",
        "fell back",
        "pass",
        "undone",
        "recovered",
        "resumed",
        "imported",
    ];
    for what in all {
        assert!(seen.borrow().get(what).is_some_and(|times| *times >= 10), "{what}: {:?}", seen.borrow());
    }
}

#[test]
fn after_anything_legal_a_request_is_valid_chat() {
    programs(OpenAiChat);
}

#[test]
fn after_anything_legal_a_request_is_valid_responses() {
    programs(OpenAiResponses);
}

#[test]
fn after_anything_legal_a_request_is_valid_anthropic() {
    programs(Anthropic);
}

#[test]
fn after_anything_legal_a_request_is_valid_gemini() {
    programs(Gemini);
}

/// Takes something away, or puts something else in its place.
fn mangle(value: &mut Value, dice: &mut Dice) {
    let other = |dice: &mut Dice| match dice.pick(9) {
        0 => Value::Null,
        1 => json!([]),
        2 => json!({}),
        3 => "".into(),
        4 => json!(-0.1),
        5 => json!([null, 7, "x", []]),
        6 => json!({ "type": "tool_result", "role": "user", "text": 5 }),
        7 => json!({ "type": "text", "text": { "a": [] } }),
        _ => true.into(),
    };
    let (here, at) = (dice.one_in(4), dice.pick(64));
    match value {
        Value::Array(list) if !here && !list.is_empty() => {
            let at = at % list.len();
            match dice.pick(6) {
                0 => drop(list.remove(at)),
                1 => list.push(list[at].clone()),
                _ => mangle(&mut list[at], dice),
            }
        }
        Value::Object(fields) if !here && !fields.is_empty() => {
            let name = fields.keys().nth(at % fields.len()).unwrap().clone();
            match dice.pick(6) {
                0 => drop(fields.remove(&name)),
                1 => drop(fields.insert("of".to_owned() + &name, other(dice))),
                _ => mangle(fields.get_mut(&name).unwrap(), dice),
            }
        }
        value => *value = other(dice),
    }
}

/// Every block, and every element that has none, in one order.
fn pieces(list: &Value) -> Vec<String> {
    let Some(list) = list.as_array() else { return vec![list.to_string()] };
    let blocks =
        |element: &Value| ["content", "parts"].iter().find_map(|field| element.get(*field)?.as_array().cloned());
    let pieces = list.iter().flat_map(|element| match blocks(element) {
        Some(blocks) if !blocks.is_empty() => blocks,
        _ => vec![element.clone()],
    });
    let mut pieces: Vec<_> = pieces.map(|piece| piece.to_string()).collect();
    pieces.sort();
    pieces
}

/// Whatever JSON it is: an error and nothing entered, or all of it entered and comes back.
fn mangled_comes_back_or_is_refused<F: Spoken>(format: F) {
    let (taken, refused) = (Cell::new(0), Cell::new(0));
    many(1_000, 160, |mut dice| {
        let mut half = Dice { bytes: dice.bytes.split_off(dice.bytes.len() / 2), at: 0, ids: 0 };
        let mut list = body::<F>(&mut dice)[F::HISTORY].take();
        for _ in 0..=half.pick(3) {
            mangle(&mut list, &mut half);
        }
        let (mut window, _) = window();
        let first = window.lanes().work.push("there before").map_err(failed)?;
        let json = if half.one_in(2) { json!({ F::HISTORY: list }) } else { list.clone() };
        let Ok(imported) = window.lanes().import(format, &json) else {
            refused.set(refused.get() + 1);
            prop_assert_eq!(resident(&window), [first]);
            prop_assert!(window.open_calls().is_empty() && window.orphans().is_empty());
            return Ok(());
        };
        taken.set(taken.get() + 1);
        prop_assert_eq!(resident(&window).len(), 1 + imported.spans.len());
        let (mut window, _) = self::window();
        let _ = window.lanes().import(format, &json).map_err(failed)?;
        let rendered = window.render_for(format);
        if imported.spans.is_empty() {
            prop_assert!(rendered.is_err());
            return Ok(());
        }
        let found = rendered.map_err(failed)?.to_value()[F::HISTORY].take();
        let whole = if list.is_array() || list.is_string() { list } else { json!([list]) };
        if wire::validate(format, &whole).is_ok() {
            prop_assert_eq!(&found, &whole);
        }
        // What stands between a call and its results comes after them, and nothing is lost. A result without its call is text.
        let (found, wanted) = (pieces(&found), pieces(&whole));
        let as_text = found.iter().filter(|piece| piece.contains("[a result of ")).count();
        prop_assert!(as_text <= imported.orphans.len());
        if as_text == 0 {
            prop_assert_eq!(found, wanted);
        }
        drop(window.lanes().externalize().wait().map_err(failed)?);
        Ok(())
    });
    assert!(taken.get() >= 200 && refused.get() >= 50, "{} taken, {} refused", taken.get(), refused.get());
}

#[test]
fn mangled_json_comes_back_or_is_refused_chat() {
    mangled_comes_back_or_is_refused(OpenAiChat);
}

#[test]
fn mangled_json_comes_back_or_is_refused_responses() {
    mangled_comes_back_or_is_refused(OpenAiResponses);
}

#[test]
fn mangled_json_comes_back_or_is_refused_anthropic() {
    mangled_comes_back_or_is_refused(Anthropic);
}

#[test]
fn mangled_json_comes_back_or_is_refused_gemini() {
    mangled_comes_back_or_is_refused(Gemini);
}
