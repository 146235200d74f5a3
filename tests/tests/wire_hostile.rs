//! Wire JSON made to harm: what is large, deep, or says more than the format has a place for.

use std::time::{Duration, Instant};

use keepspan::{
    Authority, Episode, Mutation, NewSpan, SpanId, Window,
    presets::Conversation,
    store::{self, MemoryStore, Store},
    tool::{Anthropic, Gemini, OpenAiChat, OpenAiResponses},
    wire::{self, Format, RenderError},
};
use serde_json::{Value, json};

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// No measure of speed: some ten times what a busy machine takes. Where time grew with the cube of the size, it was minutes.
const SOON: Duration = Duration::from_secs(30);

fn window() -> Outcome<Window<Conversation, MemoryStore>> {
    Ok(Window::open(MemoryStore::default(), Episode::new("e", "p"))?)
}

/// Imports one after the other, renders and judges.
fn passes<F: Format>(format: F, parts: &[Value]) -> Outcome {
    let (mut window, began) = (window()?, Instant::now());
    for part in parts {
        let imported = window.lanes().import(format, part)?;
        assert!(imported.orphans.is_empty());
    }
    wire::validate(format, &window.render_for(format)?.to_value())?;
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    Ok(())
}

fn redact<St: Store>(window: &mut Window<Conversation, St>, span: SpanId) -> Outcome {
    let _ = window.lanes().externalize().wait()?;
    let why = Mutation::new("a secret", "ask the owner")?;
    window.redact_protected(span, why, Authority::of("owner")?).wait()?;
    Ok(())
}

#[test]
fn a_thousand_items_that_call_are_rendered_soon() -> Outcome {
    let call = |n| json!({ "type": "function_call", "call_id": format!("c{n}"), "name": "read", "arguments": "{}" });
    let result = |n| json!({ "type": "function_call_output", "call_id": format!("c{n}"), "output": "x" });
    let user = json!({ "role": "user", "content": "u" });
    let list: Vec<_> = [user].into_iter().chain((0..1_000).map(call)).chain((0..1_000).map(result)).collect();
    passes(OpenAiResponses, &[json!(list)])
}

#[test]
fn results_that_come_later_are_named_soon() -> Outcome {
    let call = |n| json!({ "functionCall": { "name": format!("read_{n}"), "args": {} } });
    let result = |n| json!({ "functionResponse": { "name": format!("read_{n}"), "response": { "output": "x" } } });
    let calls: Vec<_> = (0..500).map(call).collect();
    let results: Vec<_> = (0..500).map(result).collect();
    let asked = json!([{ "role": "user", "parts": [{ "text": "u" }] }, { "role": "model", "parts": calls }]);
    passes(Gemini, &[asked, json!([{ "role": "user", "parts": results }])])
}

#[test]
fn many_images_of_one_result_are_counted_soon() -> Outcome {
    let source = json!({ "type": "base64", "media_type": "image/png", "data": "A".repeat(64) });
    let images = vec![json!({ "type": "image", "source": source }); 100_000];
    let call = json!({ "type": "tool_use", "id": "t", "name": "read", "input": {} });
    passes(
        Anthropic,
        &[json!([
            { "role": "user", "content": "u" },
            { "role": "assistant", "content": [call] },
            { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "t", "content": images }] },
        ])],
    )
}

/// The last span of a conversation is redacted; whether the file still has the secret.
fn still_there<F: Format>(format: F, list: &Value) -> Outcome<bool> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("e.db");
    let mut window = Window::<Conversation, _>::open(store::open(&path)?, Episode::new("e", "p"))?;
    let imported = window.lanes().import(format, list)?;
    assert_eq!(window.render_for(format)?.history(), list.to_string());
    redact(&mut window, *imported.spans.last().ok_or("no span")?)?;
    assert!(!window.render_for(format)?.body().contains("SECRET"));
    drop(window);
    Ok(std::fs::read(&path)?.windows(6).any(|bytes| bytes == b"SECRET"))
}

#[test]
fn a_secret_in_a_known_field_beside_the_text_is_redacted_with_it() -> Outcome {
    let after = |message: Value| json!([{ "content": "u", "role": "user" }, message]);
    for message in [
        json!({ "role": "user", "content": "hush", "text": "SECRET" }),
        json!({ "role": "user", "content": "hush", "cache_control": ["SECRET"] }),
        json!({ "role": "user", "content": [{ "type": "text", "text": "hush", "content": "SECRET" }] }),
    ] {
        assert!(!still_there(OpenAiChat, &after(message.clone()))?, "{message}");
    }
    let block = json!({ "type": "text", "text": "hush", "error": { "content": ["SECRET"] } });
    assert!(!still_there(Anthropic, &after(json!({ "role": "user", "content": [block] })))?);
    let output = json!({ "type": "function_call_output", "call_id": "c", "output": "hush", "error": "SECRET" });
    assert!(!still_there(OpenAiResponses, &after(output))?);
    Ok(())
}

/// In the order of their calls, as the provider takes them: a result in place of one has its id, not another's.
#[test]
fn results_without_ids_are_of_the_calls_in_order() -> Outcome {
    let call = |id: &str| json!({ "functionCall": { "name": "read", "id": id, "args": {} } });
    let result = |text: &str| json!({ "functionResponse": { "name": "read", "response": { "output": text } } });
    let asked = json!([
        { "role": "user", "parts": [{ "text": "u" }] },
        { "role": "model", "parts": [call("a"), call("b")] },
    ]);
    let answered = json!([{ "role": "user", "parts": [result("first"), result("second")] }]);
    let mut window = window()?;
    let _ = window.lanes().import(Gemini, &asked)?;
    let spans = window.lanes().import(Gemini, &answered)?.spans;
    redact(&mut window, spans[0])?;
    let sent = window.render_for(Gemini)?.to_value();
    wire::validate(Gemini, &sent)?;
    let results = &sent["contents"][2]["parts"];
    assert_eq!(results[0]["functionResponse"]["id"], "a");
    assert_eq!(results[1], result("second"));
    Ok(())
}

/// A server that gives its calls no ids: each result goes to the lane of its own tool.
#[test]
fn calls_without_ids_keep_their_results_lanes() -> Outcome {
    let call = |name: &str| json!({ "type": "function", "function": { "name": name, "arguments": "{}" } });
    let list = json!([
        { "role": "user", "content": "u" },
        { "role": "assistant", "content": null, "tool_calls": [call("read_file"), call("deploy")] },
        { "role": "tool", "content": "text" },
        { "role": "tool", "content": "deployed" },
    ]);
    let mut window = window()?;
    let _ = window.lanes().import(OpenAiChat, &list)?;
    let lanes: Vec<_> = window.render().iter().map(|message| message.lane()).collect();
    assert_eq!(lanes, ["asked", "said", "read", "told"], "what a deployment told is protected");
    Ok(())
}

#[test]
fn a_pushed_turn_deeper_than_parsers_take_is_refused() -> Outcome {
    for (depth, fits) in [(90, true), (110, false), (122, false)] {
        let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let call = format!(r#"{{"type":"tool_use","id":"c","name":"read","input":{{"x":{deep}}}}}"#);
        let mut window = window()?;
        window.lanes().route(NewSpan::human("u"))?;
        window.lanes().route(NewSpan::model(format!(r#"{{"content":[{call}]}}"#)).calls(["c"]))?;
        window.lanes().route(NewSpan::tool("read", "x").answers("c"))?;
        match window.render_for(Anthropic) {
            Ok(sent) => assert!(fits && wire::validate(Anthropic, &sent.to_value()).is_ok(), "{depth}"),
            Err(error) => assert!(!fits && matches!(error, RenderError::NoMessage { .. }), "{depth}: {error}"),
        }
    }
    Ok(())
}
