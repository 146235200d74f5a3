//! The judge of requests: it takes what providers took, and finds each rule broken at its place and nothing else.

use std::{fs, path::Path};

use keepspan::{
    tool::{Anthropic, Gemini, OpenAiChat, OpenAiResponses},
    wire::{
        self,
        validate::{Format, Invalid, Rule, Strict},
    },
};
use proptest::prelude::*;
use serde_json::{Value, json};

type Judged = fn(&Value) -> Result<(), Invalid>;

/// The formats: their names as the corpus has them, their lists, and how they judge.
const FORMATS: [(&str, &str, Judged, Judged); 4] = [
    (
        "openai-chat",
        "messages",
        |body| wire::validate(OpenAiChat, body),
        |body| wire::validate(Strict(OpenAiChat), body),
    ),
    (
        "openai-responses",
        "input",
        |body| wire::validate(OpenAiResponses, body),
        |body| wire::validate(Strict(OpenAiResponses), body),
    ),
    (
        "anthropic-messages",
        "messages",
        |body| wire::validate(Anthropic, body),
        |body| wire::validate(Strict(Anthropic), body),
    ),
    ("gemini-api", "contents", |body| wire::validate(Gemini, body), |body| wire::validate(Strict(Gemini), body)),
];

/// A request that its provider took, or would.
#[derive(Clone, Debug)]
struct Request {
    format: usize,
    source: String,
    body: Value,
}

impl Request {
    fn list(&self) -> &'static str {
        FORMATS[self.format].1
    }

    fn history(&self) -> &Vec<Value> {
        self.body[self.list()].as_array().unwrap()
    }
}

/// Every recorded request in the four formats; none without the corpus.
fn recorded() -> Vec<Request> {
    let Some(corpus) = std::env::var_os("KEEPSPAN_CORPUS") else {
        eprintln!("SKIPPED: KEEPSPAN_CORPUS is not set, so the recorded requests are not at hand");
        return Vec::new();
    };
    let corpus = Path::new(&corpus);
    let mut requests = Vec::new();
    for (format, (folder, ..)) in FORMATS.iter().enumerate() {
        let file: Value =
            serde_json::from_str(&fs::read_to_string(corpus.join(folder).join("cassettes.json")).unwrap()).unwrap();
        for conversation in file["conversations"].as_array().unwrap() {
            for exchange in conversation["exchanges"].as_array().unwrap() {
                assert_eq!(exchange["response"]["status"], 200);
                let source = format!("{folder} {}", conversation["source"]);
                requests.push(Request { format, source, body: exchange["request"]["body"].clone() });
            }
        }
    }
    let chats = corpus.join("openai-chat");
    let agents: Vec<Value> =
        serde_json::from_str(&fs::read_to_string(chats.join("swe-gym-openhands.json")).unwrap()).unwrap();
    let tuned = fs::read_to_string(chats.join("tau2-sft-train.jsonl")).unwrap();
    let tuned: Vec<Value> = tuned.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (index, chat) in agents.iter().chain(&tuned).enumerate() {
        // Each answer of the assistant was given to a request with what came before it.
        let messages = chat["messages"].as_array().unwrap();
        for (end, message) in messages.iter().enumerate() {
            if message["role"] == "assistant" {
                let body = json!({ "messages": &messages[..end] });
                requests.push(Request { format: 0, source: format!("openai-chat {index} to {end}"), body });
            }
        }
    }
    requests
}

/// One whole conversation in each format, with a pair of every kind.
fn written() -> Vec<Request> {
    let bodies = [
        json!({ "messages": [
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": [{ "type": "text", "text": "Which tables?" }] },
            { "role": "assistant", "content": null, "tool_calls": [chat_call("c1"), chat_call("c2")] },
            { "role": "tool", "tool_call_id": "c2", "content": "users" },
            { "role": "tool", "tool_call_id": "c1", "content": "" },
            { "role": "assistant", "content": "One more.", "tool_calls": [chat_call("c1")] },
            { "role": "tool", "tool_call_id": "c1", "content": [{ "type": "text", "text": "orders" }] },
            { "role": "user", "content": "Thanks." },
        ] }),
        json!({ "input": [
            { "role": "user", "content": [{ "type": "input_text", "text": "Which tables?" }] },
            { "type": "reasoning", "id": "rs_1", "summary": [] },
            { "type": "function_call", "id": "fc_1", "call_id": "c1", "name": "list", "arguments": "{}" },
            { "type": "custom_tool_call", "id": "ct_1", "call_id": "c2", "name": "sql", "input": "select 1" },
            { "type": "custom_tool_call_output", "call_id": "c2", "output": "1" },
            { "type": "function_call_output", "call_id": "c1", "output": "users" },
            { "type": "reasoning", "id": "rs_2", "summary": [] },
            { "type": "message", "id": "msg_1", "role": "assistant",
              "content": [{ "type": "output_text", "text": "users" }] },
            { "role": "user", "content": "Thanks." },
        ] }),
        json!({ "thinking": { "type": "enabled", "budget_tokens": 1024 }, "messages": [
            { "role": "user", "content": "Which tables?" },
            { "role": "assistant", "content": [
                thinking(),
                { "type": "text", "text": "I look." },
                { "type": "server_tool_use", "id": "s1", "name": "web_search", "input": {} },
                { "type": "web_search_tool_result", "tool_use_id": "s1", "content": [] },
                tool_use("t1"),
                tool_use("t2"),
            ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "t2", "content": "" },
                { "type": "tool_result", "tool_use_id": "t1", "content": "users" },
                { "type": "text", "text": "Go on." },
            ] },
            { "role": "assistant", "content": [thinking(), tool_use("t3")] },
            { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "t3" }] },
        ] }),
        json!({ "contents": [
            { "parts": [{ "text": "Which tables?" }] },
            { "role": "model", "parts": [
                { "functionCall": { "name": "list", "args": {} }, "thoughtSignature": "sig" },
                { "functionCall": { "name": "list", "args": {} } },
                { "functionCall": { "id": "c3", "name": "count", "args": {} } },
            ] },
            { "role": "user", "parts": [
                { "functionResponse": { "id": "c3", "name": "count", "response": {} } },
                { "functionResponse": { "name": "list", "response": {} } },
                { "functionResponse": { "name": "list", "response": {} } },
            ] },
            { "role": "model", "parts": [
                { "function_call": { "name": "list" }, "thought_signature": "sig" },
            ] },
            { "role": "user", "parts": [{ "function_response": { "name": "list", "response": {} } }] },
        ] }),
    ];
    let request = |(format, body)| Request { format, source: "written here".to_owned(), body };
    bodies.into_iter().enumerate().map(request).collect()
}

fn chat_call(id: &str) -> Value {
    json!({ "id": id, "type": "function", "function": { "name": "list", "arguments": "{}" } })
}

fn tool_use(id: &str) -> Value {
    json!({ "type": "tool_use", "id": id, "name": "list", "input": {} })
}

fn thinking() -> Value {
    json!({ "type": "thinking", "thinking": "", "signature": "sig" })
}

#[test]
fn what_providers_took_is_valid() {
    let requests = recorded();
    for request in requests.iter().chain(&written()) {
        let (_, list, judge, strictly) = FORMATS[request.format];
        assert_eq!(judge(&request.body), Ok(()), "{}", request.source);
        assert_eq!(judge(&request.body[list]), Ok(()), "{}, its history alone", request.source);
        assert_eq!(strictly(&request.body), Ok(()), "{}, strictly", request.source);
    }
    for (format, (folder, ..)) in FORMATS.iter().enumerate() {
        let count = requests.iter().filter(|request| request.format == format).count();
        assert!(requests.is_empty() || count >= 9, "{folder}: only {count} requests");
    }
}

/// `valid` is valid, and `invalid` breaks `rules` and no others. Both are histories.
fn check<F: Format>(format: F, valid: &Value, invalid: &Value, rules: &[(&str, Rule)]) {
    assert_eq!(wire::validate(format, valid), Ok(()), "{valid:#}");
    finds(format, invalid, rules);
}

fn finds<F: Format>(format: F, invalid: &Value, rules: &[(&str, Rule)]) {
    let found = wire::validate(format, invalid).expect_err("should be invalid");
    let found: Vec<_> = found.violations.iter().map(|v| (v.pointer.as_str(), v.rule)).collect();
    assert_eq!(found, rules, "{invalid:#}");
}

fn field(field: &'static str) -> Rule {
    Rule::Field { field }
}

#[test]
fn a_body_or_its_history() {
    let calling = json!([{ "role": "assistant", "tool_calls": [chat_call("c1")] }]);
    finds(OpenAiChat, &calling, &[("/0/tool_calls/0", Rule::Unanswered)]);
    let invalid = wire::validate(OpenAiChat, &json!({ "model": "m", "messages": calling })).unwrap_err();
    let [violation] = &*invalid.violations else { panic!("{invalid}") };
    assert_eq!(violation.pointer, "/messages/0/tool_calls/0");
    assert_eq!((violation.message, violation.item), (Some(0), Some(0)));
    assert_eq!(
        invalid.to_string(),
        "OpenAI Chat would refuse this history:\n/messages/0/tool_calls/0: this call has no result where the provider \
         looks for one: put the result there, or take the call out too"
    );
    for (_, list, judge, _) in FORMATS {
        for body in [json!({}), json!(null), json!(7), json!("text"), json!({ list: {} }), json!({ list: 1 })] {
            let invalid = judge(&body).unwrap_err();
            assert_eq!((invalid.violations.len(), invalid.violations[0].rule), (1, Rule::NoHistory), "{body}");
        }
        let invalid = judge(&json!({ list: [] })).unwrap_err();
        assert_eq!((invalid.violations.len(), invalid.violations[0].rule), (1, Rule::EmptyHistory));
        assert_eq!((&*invalid.violations[0].pointer, invalid.violations[0].message), (&*format!("/{list}"), None));
        // The same number of violations as messages: all are found.
        let invalid = judge(&json!([1, null, []])).unwrap_err();
        let messages: Vec<_> = invalid.violations.iter().map(|v| v.message).collect();
        for message in 0..3 {
            assert!(messages.contains(&Some(message)), "{invalid}");
        }
        assert!(messages.is_sorted());
    }
    assert_eq!(wire::validate(OpenAiResponses, &json!({ "input": "One text." })), Ok(()));
    finds(OpenAiChat, &json!({ "messages": "One text." }), &[("", Rule::NoHistory)]);
}

#[test]
fn strict_refuses_what_is_unknown() {
    let block = json!({ "type": "hologram", "data": "…" });
    let message = json!([{ "role": "user", "content": [block] }]);
    let item = json!([{ "role": "user", "content": "Hi." }, block]);
    let part = json!([{ "parts": [{ "hologram": {} }] }]);
    check(OpenAiChat, &message, &json!([{ "role": "user", "content": [{}] }]), &[("/0/content/0", field("type"))]);
    finds(Strict(OpenAiChat), &message, &[("/0/content/0", Rule::Unknown)]);
    check(Anthropic, &message, &json!([{ "role": "user", "content": [{}] }]), &[("/0/content/0", field("type"))]);
    finds(Strict(Anthropic), &message, &[("/0/content/0", Rule::Unknown)]);
    check(OpenAiResponses, &item, &json!([{ "data": 1 }]), &[("/0", field("type"))]);
    finds(Strict(OpenAiResponses), &item, &[("/1", Rule::Unknown)]);
    finds(Strict(OpenAiResponses), &message, &[("/0/content/0", Rule::Unknown)]);
    check(Gemini, &part, &json!([{ "parts": [{}] }]), &[("/0/parts/0", Rule::NoContent)]);
    finds(Strict(Gemini), &part, &[("/0/parts/0", Rule::Unknown)]);
    let call = json!([
        { "role": "assistant", "tool_calls": [{ "id": "c1", "type": "hologram" }] },
        { "role": "tool", "tool_call_id": "c1", "content": "" },
    ]);
    check(OpenAiChat, &call, &json!([{ "role": "tool", "content": "" }]), &[("/0", field("tool_call_id"))]);
    finds(Strict(OpenAiChat), &call, &[("/0/tool_calls/0", Rule::Unknown)]);
}

/// `messages` with the value at `pointer` replaced, or removed where there is none.
fn with(messages: &Value, pointer: &str, value: Option<Value>) -> Value {
    let mut messages = messages.clone();
    if let Some(value) = value {
        *messages.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
    } else {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        match messages.pointer_mut(parent).unwrap() {
            Value::Object(object) => drop(object.remove(key).unwrap_or_else(|| panic!("{pointer}"))),
            Value::Array(array) => drop(array.remove(key.parse().unwrap())),
            other => panic!("{other}"),
        }
    }
    messages
}

/// The body written above, changed at one place, breaks these rules.
fn changed(format: usize, pointer: &str, value: Option<Value>, rules: &[(&str, Rule)]) {
    let Request { body, .. } = written().swap_remove(format);
    let body = with(&body, pointer, value);
    match format {
        0 => finds(OpenAiChat, &body, rules),
        1 => finds(OpenAiResponses, &body, rules),
        2 => finds(Anthropic, &body, rules),
        _ => finds(Gemini, &body, rules),
    }
}

#[test]
fn openai_chat() {
    let change = |pointer: &str, value, rules: &[(&str, Rule)]| changed(0, pointer, Some(value), rules);
    let remove = |pointer: &str, rules: &[(&str, Rule)]| changed(0, pointer, None, rules);
    change("/messages/0/role", json!("ai"), &[("/messages/0", Rule::Role)]);
    remove("/messages/0/role", &[("/messages/0", field("role"))]);
    change("/messages/0/content", json!([]), &[("/messages/0", Rule::NoContent)]);
    remove("/messages/1/content", &[("/messages/1", Rule::NoContent)]);
    change("/messages/3/content", json!(null), &[("/messages/3", Rule::NoContent)]);
    change(
        "/messages/6/content/0",
        json!({ "type": "image_url", "image_url": {} }),
        &[("/messages/6/content/0", Rule::WrongRole)],
    );
    change(
        "/messages/1/content/0",
        json!({ "type": "refusal", "refusal": "No." }),
        &[("/messages/1/content/0", Rule::WrongRole)],
    );
    remove("/messages/1/content/0/text", &[("/messages/1/content/0", field("text"))]);
    let text = json!({ "role": "assistant", "content": "No." });
    change("/messages/5", text.clone(), &[("/messages/6", Rule::Orphan)]);
    change("/messages/4", text, &[("/messages/2/tool_calls/0", Rule::Unanswered)]);
    remove("/messages/4", &[("/messages/2/tool_calls/0", Rule::Unanswered)]);
    change(
        "/messages/4/tool_call_id",
        json!("c2"),
        &[("/messages/2/tool_calls/0", Rule::Unanswered), ("/messages/4", Rule::Duplicate)],
    );
    change(
        "/messages/2/tool_calls/1/id",
        json!("c1"),
        &[("/messages/2/tool_calls/1", Rule::Duplicate), ("/messages/3", Rule::Orphan)],
    );
    change(
        "/messages/4/tool_call_id",
        json!("c9"),
        &[("/messages/2/tool_calls/0", Rule::Unanswered), ("/messages/4", Rule::Orphan)],
    );
    remove(
        "/messages/4/tool_call_id",
        &[("/messages/2/tool_calls/0", Rule::Unanswered), ("/messages/4", field("tool_call_id"))],
    );
    change("/messages/5/tool_calls", json!([]), &[("/messages/5", field("tool_calls")), ("/messages/6", Rule::Orphan)]);
    let call = "/messages/5/tool_calls/0";
    change("/messages/5/tool_calls/0/function/arguments", json!({}), &[(call, field("function/arguments"))]);
    remove("/messages/5/tool_calls/0/function/name", &[(call, field("function/name"))]);
    remove("/messages/5/tool_calls/0/type", &[(call, field("type"))]);
    remove("/messages/5/tool_calls/0/id", &[(call, field("id")), ("/messages/6", Rule::Orphan)]);
    let custom = json!([
        { "role": "user", "content": "Hi." },
        { "role": "assistant", "content": "", "tool_calls": [{ "id": "c1", "type": "custom", "custom": { "name": "sql", "input": "" } }] },
        { "role": "tool", "tool_call_id": "c1", "content": "1" },
    ]);
    let without = with(&custom, "/1/tool_calls/0/custom/input", None);
    check(OpenAiChat, &custom, &without, &[("/1/tool_calls/0", field("custom/input"))]);
    let without = with(&custom, "/1/tool_calls/0/custom/name", None);
    finds(OpenAiChat, &without, &[("/1/tool_calls/0", field("custom/name"))]);
    // What stands instead of content, and the deprecated function calls.
    let instead = json!([
        { "role": "user", "content": "Hi." },
        { "role": "assistant", "refusal": "No.", "tool_calls": null },
        { "role": "assistant", "function_call": { "name": "f", "arguments": "" } },
        { "role": "function", "name": "f", "content": "" },
    ]);
    let without = with(&instead, "/1/refusal", None);
    check(OpenAiChat, &instead, &without, &[("/1", Rule::NoContent)]);
}

#[test]
fn openai_responses() {
    let change = |pointer: &str, value, rules: &[(&str, Rule)]| changed(1, pointer, Some(value), rules);
    let remove = |pointer: &str, rules: &[(&str, Rule)]| changed(1, pointer, None, rules);
    change("/input/0/role", json!("tool"), &[("/input/0", Rule::Role)]);
    change("/input/8/content", json!([]), &[("/input/8", Rule::NoContent)]);
    remove("/input/8/content", &[("/input/8", Rule::NoContent)]);
    change("/input/0/content/0/type", json!("output_text"), &[("/input/0/content/0", Rule::WrongRole)]);
    change("/input/7/content/0/type", json!("input_text"), &[("/input/7/content/0", Rule::WrongRole)]);
    remove("/input/7/content/0/text", &[("/input/7/content/0", field("text"))]);
    remove("/input/5", &[("/input/2", Rule::Unanswered)]);
    remove("/input/4", &[("/input/3", Rule::Unanswered)]);
    remove("/input/3", &[("/input/3", Rule::Orphan)]);
    change("/input/5/call_id", json!("c9"), &[("/input/2", Rule::Unanswered), ("/input/5", Rule::Orphan)]);
    change(
        "/input/4/type",
        json!("function_call_output"),
        &[("/input/3", Rule::Unanswered), ("/input/4", Rule::Orphan)],
    );
    let twice = json!({ "type": "function_call_output", "call_id": "c1", "output": "" });
    change("/input/8", twice, &[("/input/8", Rule::Duplicate)]);
    let again = json!({ "type": "function_call", "call_id": "c1", "name": "list", "arguments": "" });
    change("/input/4", again, &[("/input/3", Rule::Unanswered), ("/input/4", Rule::Duplicate)]);
    change("/input/3/id", json!("fc_1"), &[("/input/3", Rule::Duplicate)]);
    change("/input/5/call_id", json!(null), &[("/input/2", Rule::Unanswered), ("/input/5", field("call_id"))]);
    change("/input/2/arguments", json!({}), &[("/input/2", field("arguments"))]);
    change("/input/3/input", json!({}), &[("/input/3", field("input"))]);
    change("/input/2/name", json!(7), &[("/input/2", field("name"))]);
    change("/input/3/name", json!(""), &[("/input/3", field("name"))]);
    remove("/input/4/output", &[("/input/4", field("output"))]);
    remove("/input/1/summary", &[("/input/1", field("summary"))]);
    remove("/input/7", &[("/input/6", Rule::Reasoning)]);
    remove("/input/7/id", &[("/input/6", Rule::Reasoning)]);
    change("/input/8", json!({ "type": "reasoning", "id": "rs_3", "summary": [] }), &[("/input/8", Rule::Reasoning)]);
    let compacted = json!([{ "type": "compaction", "encrypted_content": "…" }, { "role": "user", "content": "Hi." }]);
    let without = with(&compacted, "/0/encrypted_content", None);
    check(OpenAiResponses, &compacted, &without, &[("/0", field("encrypted_content"))]);
    // Without an id it stands for itself; a call whose id comes again after its result is another one.
    let free = json!([
        { "type": "function_call", "call_id": "c1", "name": "list", "arguments": "" },
        { "type": "function_call_output", "call_id": "c1", "output": [] },
        { "type": "function_call", "call_id": "c1", "name": "list", "arguments": "" },
        { "type": "reasoning", "summary": [] },
        { "role": "user", "content": "Wait." },
        { "type": "function_call_output", "call_id": "c1", "output": "" },
        { "type": "tool_search_call", "call_id": null, "id": "tsc_1" },
        { "type": "tool_search_call", "call_id": "c2", "id": "tsc_2" },
        { "type": "tool_search_output", "call_id": "c2", "tools": [] },
        { "type": "local_shell_call", "call_id": "c3", "id": "ls_1" },
        { "type": "local_shell_call_output", "id": "c3", "output": "" },
    ]);
    check(OpenAiResponses, &free, &with(&free, "/8", None), &[("/7", Rule::Unanswered)]);
    finds(OpenAiResponses, &with(&free, "/10", None), &[("/9", Rule::Unanswered)]);
    // Its call can be elsewhere, and what a reference stands for can be either.
    let output = json!({ "type": "function_call_output", "call_id": "c1", "output": "" });
    finds(OpenAiResponses, &json!([output]), &[("/0", Rule::Orphan)]);
    finds(OpenAiResponses, &json!({ "input": [output], "previous_response_id": null }), &[("/input/0", Rule::Orphan)]);
    for body in [
        json!({ "input": [output], "previous_response_id": "resp_1" }),
        json!({ "input": [output], "conversation": "conv_1" }),
        json!({ "input": [{ "type": "item_reference", "id": "fc_1" }, output] }),
        json!({ "input": [{ "id": "fc_1" }, output] }),
    ] {
        assert_eq!(wire::validate(OpenAiResponses, &body), Ok(()), "{body}");
    }
    let calling = json!({ "input": [free[0]], "previous_response_id": "resp_1" });
    finds(OpenAiResponses, &calling, &[("/input/0", Rule::Unanswered)]);
}

#[test]
fn anthropic() {
    let change = |pointer: &str, value, rules: &[(&str, Rule)]| changed(2, pointer, Some(value), rules);
    let remove = |pointer: &str, rules: &[(&str, Rule)]| changed(2, pointer, None, rules);
    let (first, call) = ("/messages/1/content/0", "/messages/3/content/1");
    change("/messages/0/role", json!("developer"), &[("/messages/0", Rule::Role)]);
    change("/messages/0/role", json!("assistant"), &[("/messages/0", Rule::UserFirst)]);
    change("/messages/0/role", json!("system"), &[("/messages/0", Rule::UserFirst)]);
    change("/messages/0/content", json!(""), &[("/messages/0", Rule::NoContent)]);
    change("/messages/0/content", json!([]), &[("/messages/0", Rule::NoContent)]);
    remove("/messages/0/content", &[("/messages/0", Rule::NoContent)]);
    change("/messages/0/content", json!(" \n"), &[("/messages/0", Rule::BlankText)]);
    change("/messages/0/content", json!([{ "type": "text", "text": " " }]), &[("/messages/0", Rule::BlankText)]);
    change("/messages/2/content/2/text", json!(""), &[("/messages/2/content/2", Rule::EmptyText)]);
    change("/messages/1/content/1/text", json!(""), &[("/messages/1/content/1", Rule::EmptyText)]);
    remove("/messages/1/content/1/text", &[("/messages/1/content/1", field("text"))]);
    // Calls and results.
    change(
        "/messages/4/content/0/tool_use_id",
        json!("t9"),
        &[(call, Rule::Unanswered), ("/messages/4/content/0", Rule::Orphan)],
    );
    remove("/messages/4", &[(call, Rule::Unanswered)]);
    change("/messages/4/content", json!("Go on."), &[(call, Rule::Unanswered)]);
    remove(call, &[("/messages/3/content/0", Rule::ThinkingLast), ("/messages/4/content/0", Rule::Orphan)]);
    change(
        "/messages/2/content/1/tool_use_id",
        json!("t2"),
        &[("/messages/1/content/4", Rule::Unanswered), ("/messages/2/content/1", Rule::Duplicate)],
    );
    change(
        "/messages/3/content/1/id",
        json!("t1"),
        &[(call, Rule::Duplicate), ("/messages/4/content/0", Rule::Orphan)],
    );
    change(
        "/messages/3/content/1/id",
        json!("t.3"),
        &[(call, field("id")), (call, Rule::Unanswered), ("/messages/4/content/0", Rule::Orphan)],
    );
    remove("/messages/3/content/1/id", &[(call, field("id")), ("/messages/4/content/0", Rule::Orphan)]);
    remove("/messages/3/content/1/input", &[(call, field("input"))]);
    remove("/messages/3/content/1/name", &[(call, field("name"))]);
    remove(
        "/messages/4/content/0/tool_use_id",
        &[(call, Rule::Unanswered), ("/messages/4/content/0", field("tool_use_id"))],
    );
    change(
        "/messages/4/content",
        json!([
            { "type": "text", "text": "Here." },
            { "type": "tool_result", "tool_use_id": "t3" },
        ]),
        &[("/messages/4/content/1", Rule::ResultsFirst)],
    );
    change(
        "/messages/3/content",
        json!([thinking(), tool_use("t3"), { "type": "text", "text": "I look." }]),
        &[("/messages/3/content/2", Rule::CallsLast)],
    );
    // A server's result.
    remove("/messages/1/content/3", &[("/messages/1/content/2", Rule::Unanswered)]);
    remove("/messages/1/content/2", &[("/messages/1/content/2", Rule::Orphan)]);
    remove(
        "/messages/1/content/3/tool_use_id",
        &[("/messages/1/content/2", Rule::Unanswered), ("/messages/1/content/3", field("tool_use_id"))],
    );
    // Thinking.
    change("/messages/3/content", json!([tool_use("t3")]), &[("/messages/3/content/0", Rule::ThinkingFirst)]);
    remove("/messages/1/content/0/signature", &[(first, field("signature"))]);
    remove("/messages/1/content/0/thinking", &[(first, field("thinking"))]);
    change(first, json!({ "type": "redacted_thinking" }), &[(first, field("data"))]);
    // Roles of blocks.
    change("/messages/2/content/2", thinking(), &[("/messages/2/content/2", Rule::WrongRole)]);
    change(
        "/messages/1/content/1",
        json!({ "type": "tool_result", "tool_use_id": "t1" }),
        &[("/messages/1/content/1", Rule::WrongRole)],
    );
}

#[test]
fn anthropic_turns() {
    let user = json!({ "role": "user", "content": "Hi." });
    let said = |text: &str| json!({ "role": "assistant", "content": text });
    let result = |id: &str| json!({ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": id }] });
    let calling = |blocks: Value| json!({ "role": "assistant", "content": blocks });
    let text = json!({ "type": "text", "text": "I look." });
    // The model goes on with the last message.
    check(Anthropic, &json!([user, said("The")]), &json!([user, said("The ")]), &[("/1", Rule::TrailingSpace)]);
    let ends = |text: &str| json!([user, { "role": "assistant", "content": [{ "type": "text", "text": text }] }]);
    check(Anthropic, &ends("The"), &ends("The\n"), &[("/1/content/0", Rule::TrailingSpace)]);
    check(Anthropic, &json!([user, said("")]), &json!([user, said(""), user]), &[("/1", Rule::NoContent)]);
    check(Anthropic, &json!([user, said("The "), user]), &json!([user, said(" "), user]), &[("/1", Rule::BlankText)]);
    // Consecutive messages are one turn, in which texts still come before calls.
    let apart = json!([user, user, calling(json!([text])), calling(json!([tool_use("t1")])), result("t1"), user]);
    let behind = json!([user, user, calling(json!([tool_use("t1")])), calling(json!([text])), result("t1"), user]);
    check(Anthropic, &apart, &behind, &[("/3/content/0", Rule::CallsLast)]);
    finds(
        Anthropic,
        &json!([user, calling(json!([tool_use("t1")])), said("I look."), result("t1")]),
        &[("/2", Rule::CallsLast)],
    );
    // All results are in the very next message.
    let two = calling(json!([tool_use("t1"), tool_use("t2")]));
    let both = json!({ "role": "user", "content": [result("t1")["content"][0], result("t2")["content"][0]] });
    check(
        Anthropic,
        &json!([user, two, both]),
        &json!([user, two, result("t1"), result("t2")]),
        &[("/1/content/1", Rule::Unanswered), ("/3/content/0", Rule::Orphan)],
    );
    let between = json!({ "role": "system", "content": "Be brief." });
    check(
        Anthropic,
        &json!([user, calling(json!([tool_use("t1")])), result("t1"), between]),
        &json!([user, calling(json!([tool_use("t1")])), between, result("t1")]),
        &[("/1/content/0", Rule::Unanswered), ("/3/content/0", Rule::Orphan)],
    );
    // A turn may end in thinking as long as it goes on.
    check(
        Anthropic,
        &json!([user, calling(json!([thinking()])), calling(json!([text])), user]),
        &json!([user, calling(json!([text, thinking()])), user]),
        &[("/1/content/1", Rule::ThinkingLast)],
    );
    // A compaction is a beginning.
    let compaction = json!({ "type": "compaction", "content": "They said hi." });
    check(
        Anthropic,
        &json!([calling(json!([compaction, text])), user]),
        &json!([calling(json!([text])), user]),
        &[("/0", Rule::UserFirst)],
    );
    // A server's tool may still be at work while it calls the client's, or while the turn is paused.
    let running = json!({ "type": "server_tool_use", "id": "s1", "name": "code_execution", "input": {} });
    let ran = json!({ "type": "code_execution_tool_result", "tool_use_id": "s1", "content": {} });
    let paused = json!([user, calling(json!([running]))]);
    let working = json!([user, calling(json!([running, tool_use("t1")])), result("t1"), calling(json!([ran]))]);
    assert_eq!(wire::validate(Anthropic, &paused), Ok(()));
    check(Anthropic, &working, &json!([user, calling(json!([running])), user]), &[("/1/content/0", Rule::Unanswered)]);
    // Thinking begins the turn that goes on, and is asked for only there, and only when it is on.
    let on = |messages: Value| json!({ "thinking": { "type": "enabled" }, "messages": messages });
    let step = json!([
        user,
        calling(json!([thinking(), tool_use("t1")])),
        result("t1"),
        calling(json!([tool_use("t2")])),
        result("t2")
    ]);
    let bare = json!([user, calling(json!([text, tool_use("t1")])), result("t1")]);
    assert_eq!(wire::validate(Anthropic, &json!({ "messages": bare })), Ok(()));
    let hologram = json!({ "type": "hologram" });
    let known =
        json!([user, calling(json!([compaction, hologram, thinking(), tool_use("t1"), hologram])), result("t1")]);
    assert_eq!(wire::validate(Anthropic, &on(known)), Ok(()));
    let mut over = bare.as_array().unwrap().clone();
    over.push(user);
    assert_eq!(wire::validate(Anthropic, &on(json!(over))), Ok(()));
    check(Anthropic, &on(step), &on(bare), &[("/messages/1/content/0", Rule::ThinkingFirst)]);
}

#[test]
fn gemini() {
    let change = |pointer: &str, value, rules: &[(&str, Rule)]| changed(3, pointer, Some(value), rules);
    let remove = |pointer: &str, rules: &[(&str, Rule)]| changed(3, pointer, None, rules);
    let call = "/contents/3/parts/0";
    change("/contents/4/role", json!("function"), &[(call, Rule::Unanswered), ("/contents/4", Rule::Role)]);
    change("/contents/0/parts", json!([]), &[("/contents/0", Rule::NoContent)]);
    remove("/contents/0/parts", &[("/contents/0", Rule::NoContent)]);
    change("/contents/0/parts/0", json!({ "thought": true }), &[("/contents/0/parts/0", Rule::NoContent)]);
    change("/contents/0/parts/0", json!("text"), &[("/contents/0/parts/0", Rule::NoContent)]);
    remove("/contents/4", &[(call, Rule::Unanswered)]);
    change("/contents/4/parts", json!([{ "text": "No." }]), &[(call, Rule::Unanswered)]);
    remove("/contents/2/parts/0", &[("/contents/1/parts/2", Rule::Unanswered)]);
    remove("/contents/2/parts/1", &[("/contents/1/parts/1", Rule::Unanswered)]);
    remove("/contents/1/parts/1", &[("/contents/2/parts/2", Rule::Orphan)]);
    remove("/contents/1/parts/2", &[("/contents/2/parts/0", Rule::Orphan)]);
    change(
        "/contents/2/parts/1/functionResponse/name",
        json!("count"),
        &[("/contents/1/parts/1", Rule::Unanswered), ("/contents/2/parts/1", Rule::Orphan)],
    );
    let again = json!({ "functionResponse": { "id": "c3", "name": "count", "response": {} } });
    change(
        "/contents/2/parts/1",
        again,
        &[("/contents/1/parts/1", Rule::Unanswered), ("/contents/2/parts/1", Rule::Duplicate)],
    );
    let same = json!({ "functionCall": { "id": "c3", "name": "list" } });
    change("/contents/1/parts/1", same, &[("/contents/1/parts/2", Rule::Duplicate)]);
    remove(
        "/contents/3/parts/0/function_call/name",
        &[(call, field("functionCall/name")), ("/contents/4/parts/0", Rule::Orphan)],
    );
    remove(
        "/contents/4/parts/0/function_response/name",
        &[(call, Rule::Unanswered), ("/contents/4/parts/0", field("functionResponse/name"))],
    );
}

#[test]
fn gemini_turns() {
    let user = json!({ "role": "user", "parts": [{ "text": "" }] });
    let model = |parts: Value| json!({ "role": "model", "parts": parts });
    let results = |parts: Value| json!({ "role": "user", "parts": parts });
    let call = |name: &str| json!({ "functionCall": { "name": name } });
    let signed = |name: &str| json!({ "functionCall": { "name": name }, "thoughtSignature": "sig" });
    let result = |name: &str| json!({ "functionResponse": { "name": name, "response": {} } });
    let text = json!({ "text": "I look." });
    let one = json!([user, model(json!([call("a")])), results(json!([result("a")]))]);
    // Where calls and results may stand.
    let behind_text = json!([user, model(json!([text])), model(json!([call("a")])), results(json!([result("a")]))]);
    check(Gemini, &one, &behind_text, &[("/2", Rule::CallsAfterUser)]);
    finds(Gemini, &json!([model(json!([call("a")])), results(json!([result("a")]))]), &[("/0", Rule::CallsAfterUser)]);
    finds(Gemini, &json!([user, model(json!([text, result("a")]))]), &[("/1/parts/1", Rule::WrongRole)]);
    finds(Gemini, &json!([results(json!([call("a")]))]), &[("/0/parts/0", Rule::WrongRole)]);
    finds(Gemini, &json!([results(json!([result("a")]))]), &[("/0/parts/0", Rule::Orphan)]);
    let cached = json!({ "cachedContent": "cachedContents/1", "contents": [results(json!([result("a")]))] });
    assert_eq!(wire::validate(Gemini, &cached), Ok(()));
    // Results in two contents are too few in the first.
    let both = json!([user, model(json!([call("a"), call("b")])), results(json!([result("b"), result("a")]))]);
    let split = json!([
        user,
        model(json!([call("a"), call("b")])),
        results(json!([result("a")])),
        results(json!([result("b")]))
    ]);
    check(Gemini, &both, &split, &[("/1/parts/1", Rule::Unanswered), ("/3/parts/0", Rule::Orphan)]);
    // An id that a client made up answers a call that has none, and no other.
    let made_up = |id: &str| json!({ "functionResponse": { "id": id, "name": "a", "response": {} } });
    let named = json!({ "functionCall": { "id": "c1", "name": "a" } });
    check(
        Gemini,
        &json!([user, model(json!([named, call("a")])), results(json!([made_up("x"), result("a")]))]),
        &json!([user, model(json!([named, call("a")])), results(json!([made_up("x"), made_up("y")]))]),
        &[("/1/parts/0", Rule::Unanswered), ("/2/parts/1", Rule::Orphan)],
    );
    // Signatures, in the current turn and where there are any.
    let steps = |first: Value, second: Value| {
        json!([
            user,
            model(json!([first, call("b")])),
            results(json!([result("a"), result("b")])),
            model(second),
            results(json!([result("c")]))
        ])
    };
    let sound = steps(signed("a"), json!([signed("c")]));
    check(Gemini, &sound, &steps(signed("a"), json!([call("c")])), &[("/3/parts/0", Rule::Signature)]);
    finds(Gemini, &steps(call("a"), json!([signed("c")])), &[("/1/parts/0", Rule::Signature)]);
    assert_eq!(wire::validate(Gemini, &steps(call("a"), json!([call("c")]))), Ok(()));
    let before = json!({ "text": "I look.", "thoughtSignature": "sig" });
    assert_eq!(wire::validate(Gemini, &steps(signed("a"), json!([before, call("c")]))), Ok(()));
    let mut over = steps(signed("a"), json!([call("c")])).as_array().unwrap().clone();
    over.extend([model(json!([text])), user]);
    assert_eq!(wire::validate(Gemini, &json!(over)), Ok(()));
}

/// Whether a block, message, item or part is a call or a result, by the shortest look that tells.
fn is_paired(format: usize, value: &Value) -> bool {
    let kind = value["type"].as_str().unwrap_or_default();
    match format {
        0 => kind == "function" || value["role"] == "tool",
        1 => value["call_id"].is_string(),
        2 => kind.ends_with("tool_use") || kind.ends_with("tool_result"),
        _ => ["functionCall", "functionResponse", "function_call", "function_response"]
            .iter()
            .any(|key| value.get(key).is_some()),
    }
}

/// Pointers to what a history consists of: its messages, and what is in their lists.
fn places(request: &Request) -> Vec<String> {
    let mut places = Vec::new();
    for (index, message) in request.history().iter().enumerate() {
        let message_at = format!("/{}/{index}", request.list());
        for list in ["content", "tool_calls", "parts"] {
            let count = message[list].as_array().map_or(0, Vec::len);
            places.extend((0..count).map(|item| format!("{message_at}/{list}/{item}")));
        }
        places.push(message_at);
    }
    places
}

#[test]
fn half_a_pair_is_always_found() {
    let mut found = [0; 4];
    for request in recorded().into_iter().chain(written()) {
        for place in places(&request) {
            if is_paired(request.format, request.body.pointer(&place).unwrap()) {
                let body = with(&request.body, &place, None);
                let invalid = FORMATS[request.format].2(&body).expect_err(&format!("{}: {place}", request.source));
                let half = |rule| matches!(rule, Rule::Unanswered | Rule::Orphan);
                assert!(invalid.violations.iter().any(|violation| half(violation.rule)), "{place}: {invalid}");
                found[request.format] += 1;
            }
        }
    }
    assert!(found.iter().all(|count| *count >= 4), "{found:?}");
}

/// An edit at one of a history's places.
#[derive(Clone, Copy, Debug)]
enum Edit {
    Remove,
    Repeat,
    Move,
    Blank,
}

fn edit(request: &mut Request, edit: Edit, at: prop::sample::Index, to: prop::sample::Index) {
    let places = places(request);
    if places.is_empty() {
        return;
    }
    let place = at.get(&places);
    let (list, index) = place.rsplit_once('/').unwrap();
    let index: usize = index.parse().unwrap();
    let list = request.body.pointer_mut(list).unwrap().as_array_mut().unwrap();
    match edit {
        Edit::Remove => drop(list.remove(index)),
        Edit::Repeat => list.insert(index, list[index].clone()),
        Edit::Move => {
            let value = list.remove(index);
            list.insert(to.index(list.len() + 1), value);
        }
        Edit::Blank => list[index] = [json!(null), json!({}), json!([]), json!(""), json!(-1)][to.index(5)].clone(),
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let words = [
        "role",
        "content",
        "type",
        "text",
        "id",
        "parts",
        "tool_calls",
        "tool_use",
        "tool_result",
        "user",
        "assistant",
        "model",
        "message",
        "reasoning",
        "functionCall",
        "name",
        "call_id",
        "function_call",
        "tool",
        "",
    ];
    let word = prop::sample::select(words.map(str::to_owned).to_vec());
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::hash_map(word.clone(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Judges in every way; what is found is the same for a body without other fields and for its history.
fn judge_all(request: &Request) {
    let (_, list, judge, strictly) = FORMATS[request.format];
    let alone = json!({ list: request.body[list] });
    let rules = |judged: Result<(), Invalid>| match judged {
        Ok(()) => Vec::new(),
        Err(invalid) => {
            assert!(!invalid.violations.is_empty() && !invalid.to_string().is_empty());
            for violation in &invalid.violations {
                // A list that is empty is named, not its place in the body.
                let whole = violation.message.is_none();
                assert!(
                    whole
                        || alone.pointer(&violation.pointer).is_some()
                        || request.body[list].pointer(&violation.pointer).is_some()
                );
            }
            invalid.violations.into_iter().map(|v| (v.message, v.item, v.rule)).collect::<Vec<_>>()
        }
    };
    assert_eq!(rules(judge(&alone)), rules(judge(&request.body[list])));
    let all = rules(strictly(&request.body));
    assert!(rules(judge(&request.body)).iter().all(|found| all.contains(found)));
}

#[test]
fn edited_conversations_are_judged() {
    let requests: Vec<_> = recorded().into_iter().chain(written()).collect();
    let edits = prop::sample::select(vec![Edit::Remove, Edit::Repeat, Edit::Move, Edit::Blank]);
    let edits = prop::collection::vec((edits, any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..5);
    let config = ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let judged = runner.run(&(0..requests.len(), edits), |(request, edits)| {
        let mut request = requests[request].clone();
        for (kind, at, to) in edits {
            edit(&mut request, kind, at, to);
            judge_all(&request);
        }
        Ok(())
    });
    judged.unwrap_or_else(|failure| panic!("{failure}"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_json_is_judged(value in any_json(), history in prop::collection::vec(any_json(), 0..5)) {
        for (format, (_, list, judge, strictly)) in FORMATS.into_iter().enumerate() {
            let _ = (judge(&value), strictly(&value));
            judge_all(&Request { format, source: String::new(), body: json!({ list: history }) });
        }
    }
}

#[test]
fn depth_overflows_nothing() {
    for (format, list, judge, strictly) in FORMATS {
        let mut invalid = 0;
        for (role, field) in [("user", "content"), ("assistant", "tool_calls"), ("model", "parts"), ("tool", "type")] {
            let mut deep = json!([]);
            for _ in 0..200_000 {
                deep = Value::Array(vec![deep]);
            }
            let mut body = json!({ list: [{ "role": role, "content": "Hi." }] });
            body[list][0][field] = deep;
            invalid += usize::from(judge(&body).is_err() && strictly(&body).is_err());
            // To free so deep a value is itself recursive.
            std::mem::forget(body);
        }
        assert!(invalid > 0, "{format}");
    }
}
