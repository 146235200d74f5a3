//! Each recipe, over one tool loop: what is sent is what entered, and pointers in place of what left.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics fails")]

use ::async_openai::types::{
    chat::{ChatCompletionRequestMessage, CreateChatCompletionRequest},
    responses::{CreateResponse, InputItem, InputParam},
};
use ::genai::chat::{ChatMessage, ChatRequest, ContentPart, MessageContent, ToolCall, ToolResponse};
use keepspan::{ContextState, Episode, SpanId, Spans, Window, store::MemoryStore};
use keepspan_recipes::{Stateful, async_openai, genai as recipe};
use serde_json::{Value, json};

#[derive(ContextState)]
struct Agent {
    #[instruction(roles("system", "user"))]
    rules: Spans,
    #[precondition(tools("describe"))]
    schema: Spans,
    #[evictable(otherwise)]
    work: Spans,
}

const SCHEMA: &str = "users.id BIGINT NOT NULL";

fn window() -> Window<Agent, MemoryStore> {
    Window::open(MemoryStore::default(), Episode::new("e", "p")).unwrap()
}

/// Evicts everything in `work`; gives what stays of the others.
fn evict(window: &mut Window<Agent, MemoryStore>) -> Vec<SpanId> {
    let lanes = window.lanes().externalize().wait().unwrap();
    let read = lanes.work.resident()[1..].to_vec();
    lanes.work.evict(read).wait().unwrap();
    lanes.schema.resident()
}

#[test]
fn chat_completions() {
    let call =
        |id: &str, name: &str| json!({ "id": id, "type": "function", "function": { "name": name, "arguments": "{}" } });
    let messages = json!([
        { "role": "system", "content": "Never touch production." },
        { "role": "user", "content": "Look at users." },
        { "role": "assistant", "tool_calls": [call("c1", "describe")] },
        { "role": "tool", "tool_call_id": "c1", "content": SCHEMA },
        { "role": "assistant", "content": "And the file.", "tool_calls": [call("c2", "read"), call("c3", "read")] },
        { "role": "tool", "tool_call_id": "c3", "content": "second" },
        { "role": "tool", "tool_call_id": "c2", "content": "first" },
    ]);
    let messages: Vec<ChatCompletionRequestMessage> = serde_json::from_value(messages).unwrap();
    let mut window = window();
    // As they come: each once.
    for message in &messages {
        async_openai::enter(&mut window, std::slice::from_ref(message)).unwrap();
    }
    let request = CreateChatCompletionRequest { model: "gpt-5".into(), ..Default::default() };
    let request = async_openai::chat(&window, request).unwrap();
    assert_eq!((request.model.as_str(), &request.messages), ("gpt-5", &messages));

    assert_eq!(evict(&mut window).len(), 1, "the result went to `schema`, by its call's name");
    let request = async_openai::chat(&window, request).unwrap();
    assert_eq!(request.messages[..4], messages[..4]);
    let rest = serde_json::to_string(&request.messages[4..]).unwrap();
    assert!(rest.contains("kept in the store") && !rest.contains("second") && !rest.contains("c2"), "{rest}");
}

#[test]
fn responses() {
    let items = json!([
        { "type": "message", "role": "user", "content": "Look at users." },
        { "type": "function_call", "call_id": "c1", "name": "describe", "arguments": "{}" },
        { "type": "function_call_output", "call_id": "c1", "output": SCHEMA },
        { "type": "function_call", "call_id": "c2", "name": "read", "arguments": "{}" },
        { "type": "function_call_output", "call_id": "c2", "output": "lorem ipsum" },
    ]);
    let items: Vec<InputItem> = serde_json::from_value(items).unwrap();
    let mut window = window();
    for item in &items {
        async_openai::enter_items(&mut window, std::slice::from_ref(item)).unwrap();
    }
    let request = async_openai::response(&window, CreateResponse::default()).unwrap();
    assert_eq!(request.input, InputParam::Items(items.clone()));

    assert_eq!(evict(&mut window).len(), 1);
    let InputParam::Items(sent) = async_openai::response(&window, request).unwrap().input else { unreachable!() };
    assert_eq!(sent[..3], items[..3]);
    assert!(!serde_json::to_string(&sent).unwrap().contains("lorem"));

    for stateful in [
        json!({ "input": "", "previous_response_id": "r1" }),
        json!({ "input": "", "conversation": "conv_1" }),
        json!({ "input": "", "context_management": [{ "type": "compaction", "compact_threshold": 1_000 }] }),
    ] {
        let request: CreateResponse = serde_json::from_value(stateful).unwrap();
        let refused = async_openai::response(&window, request).unwrap_err();
        assert_eq!(refused.downcast_ref(), Some(&Stateful));
    }
}

#[test]
fn genai_chat() {
    let call = |id: &str, name: &str| ToolCall {
        call_id: id.into(),
        fn_name: name.into(),
        fn_arguments: json!({ "table": "users" }),
        thought_signatures: Some(vec!["signed".into()]),
    };
    let thought = ContentPart::ThoughtSignature("turn".into());
    let both = [thought, ContentPart::ToolCall(call("c2", "read")), ContentPart::ToolCall(call("c3", "read"))];
    let messages = [
        ChatMessage::system("Never touch production."),
        ChatMessage::user("Look at users."),
        ChatMessage::from(vec![call("c1", "describe")]),
        ChatMessage::from(ToolResponse::new("c1", SCHEMA)),
        ChatMessage::assistant(MessageContent::from_parts(both.to_vec())),
        ChatMessage::from(vec![ToolResponse::new("c3", "second"), ToolResponse::new("c2", "first")]),
        ChatMessage::assistant("Done."),
    ];
    let mut window = window();
    for message in &messages {
        recipe::enter(&mut window, message).unwrap();
    }
    let request = recipe::shown(&window, ChatRequest::default()).unwrap();
    let json = |messages: &[ChatMessage]| serde_json::to_value(messages).unwrap();
    assert_eq!(json(&request.messages[..5]), json(&messages[..5]), "thought signatures too");
    let results: Vec<_> = request.messages[5..7].iter().flat_map(|of| of.content.tool_responses()).collect();
    assert_eq!(
        results.iter().map(|of| (&*of.call_id, &*of.content)).collect::<Vec<_>>(),
        [("c3", "second"), ("c2", "first")]
    );
    assert_eq!(json(&request.messages[7..]), json(&messages[6..]));

    assert_eq!(evict(&mut window).len(), 1);
    let request = recipe::shown(&window, request).unwrap();
    assert_eq!(json(&request.messages[..4]), json(&messages[..4]));
    let rest: Value = json(&request.messages[4..]);
    assert!(rest.to_string().contains("kept in the store") && !rest.to_string().contains("c2"), "{rest}");

    let stateful = ChatRequest { previous_response_id: Some("r1".into()), ..ChatRequest::default() };
    assert_eq!(recipe::shown(&window, stateful).unwrap_err().downcast_ref(), Some(&Stateful));
}
