//! An agent's loop as its author writes it, in each format: the request in, the provider's answer in, results in one at a time,
//! a request out. It stops and goes on in the middle, and what it sends is what a program without a window would send.

use std::sync::Arc;

use keepspan::{
    ContextState, Episode, NewSpan, OneByteAToken, Recovered, Spans, Window, store,
    tool::{Anthropic, Gemini, OpenAiChat, OpenAiResponses},
    wire::{self, Format, RenderError},
};
use keepspan_tests::{Fault, Faulty};
use serde_json::{Value, json};

type Checked<T = ()> = Result<T, Box<dyn std::error::Error>>;

#[derive(ContextState)]
struct Agent {
    #[instruction(roles("system", "user"))]
    rules: Spans,
    #[negative_result(on_error)]
    failed: Spans,
    #[evictable(otherwise)]
    work: Spans,
}

/// An answer, how many calls it makes, and the message that each result is sent in.
struct Round {
    answer: Value,
    calls: usize,
    results: Vec<Value>,
}

/// What happens in a format, and what is sent in the end.
struct Script {
    request: Value,
    rounds: Vec<Round>,
    sent: Value,
}

const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn chat() -> Script {
    let call = |id: &str| json!({ "id": id, "type": "function", "function": { "name": "read", "arguments": "{\"path\":\"a\"}" } });
    let said = [
        json!({ "role": "assistant", "content": null, "refusal": null, "annotations": [], "tool_calls": [call("c1"), call("c2")] }),
        json!({ "role": "assistant", "content": "One more.", "tool_calls": [call("c1")] }),
        json!({ "role": "assistant", "content": "Done. 🎉", "refusal": null }),
    ];
    let result = |id: &str, text: &str| json!({ "role": "tool", "tool_call_id": id, "content": text });
    let results = [vec![result("c2", "two"), result("c1", "")], vec![result("c1", "three")], Vec::new()];
    let first = json!([{ "role": "developer", "content": "Be brief." }, { "role": "user", "content": "Read them." }]);
    let sent: Vec<_> = first.as_array().into_iter().flatten().cloned().collect();
    let sent = said
        .iter()
        .zip(&results)
        .fold(sent, |sent, (said, results)| [sent, vec![said.clone()], results.clone()].concat());
    let body = |message: &Value| {
        json!({ "id": "chatcmpl-1", "object": "chat.completion", "model": "m", "usage": { "total_tokens": 9 },
        "choices": [{ "index": 0, "message": message, "finish_reason": "tool_calls" }] })
    };
    Script {
        request: json!({ "model": "m", "messages": first, "tools": [{ "type": "function", "function": { "name": "read" } }] }),
        rounds: rounds(said.iter().map(body), results, [2, 1, 0]),
        sent: json!({ "messages": sent }),
    }
}

fn responses() -> Script {
    let call = |n: u8| json!({ "type": "function_call", "id": format!("fc_{n}"), "call_id": format!("c{n}"), "name": "read", "arguments": "{}", "status": "completed" });
    let said = [
        vec![
            json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "enc" }),
            call(1),
            json!({ "type": "custom_tool_call", "id": "ctc_1", "call_id": "c2", "name": "patch", "input": "*** Begin" }),
        ],
        vec![json!({ "type": "image_generation_call", "id": "ig_1", "status": "completed", "result": PNG }), call(3)],
        vec![json!({ "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{ "type": "output_text", "text": "Done.", "annotations": [] }] })],
    ];
    let results = [
        vec![
            json!({ "type": "custom_tool_call_output", "call_id": "c2", "output": "ok" }),
            json!({ "type": "function_call_output", "call_id": "c1", "output": [{ "type": "input_image", "image_url": format!("data:image/png;base64,{PNG}") }] }),
        ],
        vec![json!({ "type": "function_call_output", "call_id": "c3", "output": "" })],
        Vec::new(),
    ];
    let first = vec![json!({ "role": "user", "content": "Read them." })];
    let sent =
        said.iter().zip(&results).fold(first, |sent, (said, results)| [sent, said.clone(), results.clone()].concat());
    let body = |output: &Vec<Value>| {
        json!({ "id": "resp_1", "object": "response", "status": "completed", "instructions": "Be brief.",
        "previous_response_id": null, "output": output, "usage": { "total_tokens": 9 } })
    };
    Script {
        request: json!({ "model": "m", "instructions": "Be brief.", "input": "Read them.", "store": false }),
        rounds: rounds(said.iter().map(body), results, [2, 1, 0]),
        sent: json!({ "instructions": "Be brief.", "input": sent }),
    }
}

fn anthropic() -> Script {
    let call = |id: &str| json!({ "type": "tool_use", "id": id, "name": "read", "input": { "path": "a" } });
    let said = [
        json!([{ "type": "thinking", "thinking": "Two files.", "signature": "c2ln" }, { "type": "text", "text": "I read." }, call("t1"), call("t2")]),
        json!([call("t3")]),
        json!([]),
    ];
    let result = |id: &str, content: Value| json!({ "type": "tool_result", "tool_use_id": id, "content": content });
    let image = json!([{ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": PNG } }]);
    let results = [vec![result("t2", image), result("t1", "one".into())], vec![result("t3", "".into())], Vec::new()];
    let mut sent = vec![
        json!({ "role": "user", "content": [{ "type": "text", "text": "Read them.", "cache_control": { "type": "ephemeral" } }] }),
    ];
    let request =
        json!({ "model": "m", "max_tokens": 9, "system": [{ "type": "text", "text": "Be brief." }], "messages": sent });
    for (said, results) in said.iter().zip(&results).filter(|(said, _)| **said != json!([])) {
        sent.push(json!({ "role": "assistant", "content": said }));
        sent.push(json!({ "role": "user", "content": results }));
    }
    let body = |content: &Value| {
        json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content,
        "stop_reason": "tool_use", "stop_sequence": null, "usage": { "input_tokens": 1, "output_tokens": 2 } })
    };
    let message = |result: Value| json!({ "role": "user", "content": [result] });
    Script {
        rounds: rounds(
            said.iter().map(body),
            results.map(|results| results.into_iter().map(message).collect()),
            [2, 1, 0],
        ),
        sent: json!({ "system": request["system"], "messages": sent }),
        request,
    }
}

fn gemini() -> Script {
    let call = |args: &str| json!({ "functionCall": { "name": "read", "args": { "path": args } } });
    let mut signed = call("a");
    signed["thoughtSignature"] = "c2ln".into();
    let said = [
        json!({ "role": "model", "parts": [{ "text": "Hm.", "thought": true }, signed, call("b")] }),
        json!({ "role": "model", "parts": [{ "functionCall": { "id": "g1", "name": "write", "args": {} }, "thoughtSignature": "c2ln" }] }),
        json!({ "role": "model" }),
    ];
    let results = [
        vec![
            json!({ "functionResponse": { "name": "read", "response": { "output": "one" } } }),
            json!({ "functionResponse": { "name": "read", "response": { "error": "no such file" } } }),
        ],
        vec![json!({ "functionResponse": { "id": "g1", "name": "write", "response": { "result": { "bytes": 3 } } } })],
        Vec::new(),
    ];
    let mut sent = vec![
        json!({ "role": "user", "parts": [{ "text": "Read them." }, { "inlineData": { "mimeType": "image/png", "data": PNG } }] }),
    ];
    let request = json!({ "systemInstruction": { "parts": [{ "text": "Be brief." }] }, "contents": sent, "tools": [] });
    for (said, results) in said.iter().zip(&results).filter(|(said, _)| said.get("parts").is_some()) {
        sent.push(said.clone());
        sent.push(json!({ "role": "user", "parts": results }));
    }
    let body = |content: &Value| json!({ "candidates": [{ "content": content, "finishReason": "STOP" }], "usageMetadata": {} });
    let message = |result: Value| json!({ "role": "user", "parts": [result] });
    Script {
        rounds: rounds(
            said.iter().map(body),
            results.map(|results| results.into_iter().map(message).collect()),
            [2, 1, 0],
        ),
        sent: json!({ "systemInstruction": request["systemInstruction"], "contents": sent }),
        request,
    }
}

fn rounds(answers: impl Iterator<Item = Value>, results: [Vec<Value>; 3], calls: [usize; 3]) -> Vec<Round> {
    let rounds = answers.zip(results).zip(calls);
    rounds.map(|((answer, results), calls)| Round { answer, calls, results }).collect()
}

fn episode() -> Episode {
    Episode::new("e", "p").budget(20_000)
}

/// The loop, over a file; after each import the process ends and another goes on.
fn stops_anywhere<F: Format>(format: F, Script { request, rounds, sent }: Script) -> Checked {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("episode.db");
    let mut window = Window::<Agent, _>::open_with(store::open(&path)?, episode(), OneByteAToken)?;
    let mut came: Vec<Value> = vec![request];
    let mut open = vec![0];
    for Round { answer, calls, results } in rounds {
        came.push(answer);
        open.push(calls);
        open.extend((0..results.len()).map(|done| calls - done - 1));
        came.extend(results);
    }
    for (json, open) in came.iter().zip(open) {
        let imported = window.lanes().import(format, json)?;
        assert!(imported.opaque.is_empty() && imported.orphans.is_empty(), "{imported:?}");
        assert_eq!(window.open_calls().len(), open, "{json}");
        let before = window.render_for(format)?;
        assert_eq!(wire::validate(format, &before.to_value()).is_ok(), open == 0, "{}", before.body());

        drop(window.lanes().externalize().wait()?);
        drop(window);
        window = Window::resume_with(store::open(&path)?, episode(), OneByteAToken)?;
        assert_eq!(window.render_for(format)?, before);
        assert_eq!(window.open_calls().len(), open);
    }
    assert_eq!(window.render_for(format)?.to_value(), sent);

    // The person asks again, and the first exchange leaves.
    window.lanes().route(NewSpan::human("And now?"))?;
    let first = window.lanes().work.resident().first().copied().ok_or("nothing to evict")?;
    window.lanes().externalize().wait()?.work.evict(first).wait()?;
    let request = window.render_for(format)?;
    wire::validate(format, &request.to_value())?;
    assert!(request.body().contains("recall") && request.body().contains("And now?"));
    Ok(())
}

/// What another owner did not have yet is pushed again, at the same price; and a commit without an answer is recovered.
fn goes_on_elsewhere<F: Format>(format: F, Script { request, rounds, .. }: Script) -> Checked {
    let store = Arc::new(Faulty::default());
    let mut window = Window::<Agent, _>::open_with(store.clone(), episode(), OneByteAToken)?;
    let _ = window.lanes().import(format, &request)?;
    drop(window.lanes().externalize().wait()?);
    for Round { answer, results, .. } in &rounds {
        for json in std::iter::once(answer).chain(results) {
            let _ = window.lanes().import(format, json)?;
        }
    }
    let (before, costs) = (window.render_for(format)?, window.utilization());

    let mut other = Window::<Agent, _>::resume_with(store.clone(), episode(), OneByteAToken)?;
    assert!(window.lanes().externalize().wait().is_err());
    for unsaved in window.unsaved() {
        other.lanes().route(unsaved)?;
    }
    assert_eq!(other.render_for(format)?, before);
    assert_eq!(other.utilization(), costs);
    assert!(other.open_calls().is_empty());

    for (written, fault) in [(false, Fault::Fails), (true, Fault::Unacknowledged)] {
        store.arm(1, fault);
        assert!(other.lanes().externalize().wait().is_err());
        let recovered = other.recover()?;
        assert_eq!(matches!(recovered, Recovered::Written { .. }), written, "{recovered:?}");
        assert_eq!(other.render_for(format)?, before);
        assert_eq!(other.utilization(), costs);
    }
    assert_eq!(other.uncommitted().spans, 0);
    Ok(())
}

#[test]
fn a_loop_stops_anywhere_and_sends_what_it_would_have_sent() -> Checked {
    stops_anywhere(OpenAiChat, chat())?;
    stops_anywhere(OpenAiResponses, responses())?;
    stops_anywhere(Anthropic, anthropic())?;
    stops_anywhere(Gemini, gemini())
}

#[test]
fn what_was_not_committed_is_pushed_again_as_it_was_at_the_same_price() -> Checked {
    goes_on_elsewhere(OpenAiChat, chat())?;
    goes_on_elsewhere(OpenAiResponses, responses())?;
    goes_on_elsewhere(Anthropic, anthropic())?;
    goes_on_elsewhere(Gemini, gemini())
}

/// Items of Responses alone, of which some have an `input` or an `output` of their own, and answers that say nothing.
#[test]
fn one_item_or_answer_alone_is_what_it_is() -> Checked {
    for item in [
        json!({ "type": "custom_tool_call", "call_id": "c1", "name": "patch", "input": "text" }),
        json!({ "type": "mcp_call", "id": "mcp_1", "server_label": "s", "name": "n", "arguments": "{}", "output": "text" }),
        json!({ "type": "local_shell_call_output", "id": "l1", "output": "text" }),
        json!({ "type": "code_interpreter_call", "id": "ci_1", "code": "1", "outputs": [] }),
        json!({ "role": "user", "content": "text" }),
    ] {
        let mut window = Window::<Agent, _>::open(store::MemoryStore::default(), episode().trust_estimates())?;
        let imported = window.lanes().import(OpenAiResponses, &item)?;
        assert_eq!(imported.spans.len(), 1);
        assert_eq!(window.render_for(OpenAiResponses)?.to_value(), json!({ "input": [item] }));
    }
    let mut window = Window::<Agent, _>::open(store::MemoryStore::default(), episode().trust_estimates())?;
    let nothing = [
        window
            .lanes()
            .import(OpenAiChat, &json!({ "choices": [{ "message": { "role": "assistant", "content": null } }] }))?,
        window.lanes().import(OpenAiResponses, &json!({ "object": "response", "output": [] }))?,
        window.lanes().import(Anthropic, &json!({ "role": "assistant", "content": [], "usage": {} }))?,
        window.lanes().import(Gemini, &json!({ "candidates": [{ "finishReason": "SAFETY" }] }))?,
        window.lanes().import(Gemini, &json!({ "candidates": [{ "content": { "role": "model" } }] }))?,
    ];
    assert!(nothing.iter().all(|imported| *imported == wire::Imported::default()), "{nothing:?}");
    assert!(matches!(window.render_for(Gemini), Err(RenderError::Empty { list: "contents", .. })));
    Ok(())
}
