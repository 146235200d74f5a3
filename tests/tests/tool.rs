//! What models answer, in the shapes their providers give it, and the definitions that a provider would refuse (R15).

use std::{collections::BTreeSet, mem::forget};

use keepspan::tool::{
    Answer, AnswerError, Anthropic, Gemini, LimitError, Mcp, OpenAiChat, OpenAiResponses, PRUNE, SUMMARIZE, check,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

type Outcome = Result<(), Box<dyn std::error::Error>>;
type Parts<'a> = (Option<&'a str>, &'a str, Vec<&'a str>, Option<&'a str>);
type Read = fn(&Value) -> Result<Answer, AnswerError>;

fn chat(response: &Value) -> Result<Answer, AnswerError> {
    Answer::read(OpenAiChat, response)
}

fn responses(response: &Value) -> Result<Answer, AnswerError> {
    Answer::read(OpenAiResponses, response)
}

fn anthropic(response: &Value) -> Result<Answer, AnswerError> {
    Answer::read(Anthropic, response)
}

fn gemini(response: &Value) -> Result<Answer, AnswerError> {
    Answer::read(Gemini, response)
}

fn mcp(response: &Value) -> Result<Answer, AnswerError> {
    Answer::read(Mcp, response)
}

/// Each call's id, tool, names and summary.
fn calls(answer: &Answer) -> Vec<Parts<'_>> {
    let parts = answer.calls().iter();
    parts.map(|c| (c.id(), c.tool(), c.names().iter().map(String::as_str).collect(), c.summary())).collect()
}

// One answer a provider: text, a call of the agent's own, reasoning where there is such, and one of each of the tools.

fn chat_response() -> Value {
    json!({
        "id": "chatcmpl-9f2",
        "object": "chat.completion",
        "model": "gpt-4.1-2025-04-14",
        "choices": [{
            "index": 0,
            "finish_reason": "tool_calls",
            "logprobs": null,
            "message": {
                "role": "assistant",
                "content": "The first diffs were superseded.",
                "refusal": null,
                "reasoning_content": "The user wants less context, so...",
                "tool_calls": [
                    { "id": "call_a", "type": "function", "function": { "name": "read_file", "arguments": "{\"path\": \"a.rs\"" } },
                    { "id": "call_b", "type": "function", "function": { "name": "prune_context", "arguments": "{\"spans\": [\"s4\", \"S17\"]}" } },
                    { "id": "call_c", "type": "function", "function": {
                        "name": "summarize_context", "arguments": "{\"spans\": [\"s9\"], \"summary\": \"Both builds failed on \\\"lexer\\\".\"}",
                    } },
                ],
            },
        }],
        "usage": {
            "prompt_tokens": 18000, "completion_tokens": 116, "total_tokens": 18116,
            "completion_tokens_details": { "reasoning_tokens": 60 },
        },
    })
}

fn responses_response() -> Value {
    json!({
        "id": "resp_0c1d",
        "object": "response",
        "status": "completed",
        "error": null,
        "incomplete_details": null,
        "output": [
            { "id": "rs_1", "type": "reasoning", "summary": [{ "type": "summary_text", "text": "Less context, so..." }] },
            {
                "id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
                "content": [{ "type": "output_text", "annotations": [], "text": "The first diffs were superseded." }],
            },
            { "id": "fc_1", "type": "function_call", "status": "completed", "call_id": "call_a", "name": "read_file", "arguments": "{}" },
            {
                "id": "fc_2", "type": "function_call", "status": "completed", "call_id": "call_b",
                "name": "prune_context", "arguments": "{\"spans\":[\"s4\",\"S17\"]}",
            },
            {
                "id": "fc_3", "type": "function_call", "status": "completed", "call_id": "call_c",
                "name": "summarize_context", "arguments": "{\"spans\":[\"s9\"],\"summary\":\"Both builds failed on \\\"lexer\\\".\"}",
            },
        ],
        "usage": { "input_tokens": 18000, "output_tokens": 116, "output_tokens_details": { "reasoning_tokens": 60 } },
    })
}

fn anthropic_response() -> Value {
    json!({
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "content": [
            { "type": "thinking", "thinking": "Less context, so...", "signature": "Et0E" },
            { "type": "text", "text": "The first diffs were superseded." },
            { "type": "tool_use", "id": "call_a", "name": "read_file", "input": { "path": "a.rs" } },
            { "type": "tool_use", "id": "call_b", "name": "prune_context", "input": { "spans": ["s4", "S17"] } },
            {
                "type": "tool_use", "id": "call_c", "name": "summarize_context",
                "input": { "spans": ["s9"], "summary": "Both builds failed on \"lexer\"." },
            },
        ],
        "stop_reason": "tool_use",
        "stop_sequence": null,
        "usage": { "input_tokens": 18000, "output_tokens": 116 },
    })
}

fn gemini_response() -> Value {
    json!({
        "candidates": [{
            "content": {
                "role": "model",
                "parts": [
                    { "text": "Less context, so...", "thought": true },
                    { "text": "The first diffs were superseded.", "thoughtSignature": "Es8F" },
                    { "functionCall": { "id": "call_a", "name": "read_file", "args": { "path": "a.rs" } } },
                    { "functionCall": { "id": "call_b", "name": "prune_context", "args": { "spans": ["s4", "S17"] } } },
                    { "functionCall": {
                        "id": "call_c", "name": "summarize_context",
                        "args": { "spans": ["s9"], "summary": "Both builds failed on \"lexer\"." },
                    } },
                ],
            },
            "finishReason": "STOP",
            "finishMessage": "Model generated function call(s).",
            "index": 0,
        }],
        "usageMetadata": {
            "promptTokenCount": 18000, "candidatesTokenCount": 56, "thoughtsTokenCount": 60, "totalTokenCount": 18116,
        },
        "modelVersion": "gemini-3-flash-preview",
    })
}

fn mcp_response() -> Value {
    json!({ "name": "prune_context", "arguments": { "spans": ["s4", "S17"] }, "_meta": { "progressToken": 3 } })
}

#[test]
fn one_answer_of_four_providers_is_the_same_answer() -> Outcome {
    let read = [
        chat(&chat_response())?,
        responses(&responses_response())?,
        anthropic(&anthropic_response())?,
        gemini(&gemini_response())?,
    ];
    for answer in &read {
        assert_eq!(answer.rationale(), "The first diffs were superseded.");
        assert_eq!(answer.output_tokens(), Some(116));
        let expected = [
            (Some("call_b"), PRUNE, vec!["s4", "S17"], None),
            (Some("call_c"), SUMMARIZE, vec!["s9"], Some("Both builds failed on \"lexer\".")),
        ];
        assert_eq!(calls(answer), expected);
    }
    Ok(())
}

#[test]
fn text_in_parts_is_one_block_a_line() -> Outcome {
    let parts = json!([{ "type": "text", "text": "Superseded." }, { "type": "text", "text": "" }, { "type": "text", "text": "Both." }]);
    let message = set(chat_response(), "/choices/0/message/content", parts.clone());
    assert_eq!(chat(&message)?.rationale(), "Superseded.\nBoth.");
    assert_eq!(anthropic(&json!({ "stop_reason": "end_turn", "content": parts }))?.rationale(), "Superseded.\nBoth.");
    Ok(())
}

#[test]
fn an_mcp_call_is_an_answer() -> Outcome {
    let answer = mcp(&mcp_response())?;
    assert_eq!(calls(&answer), [(None, PRUNE, vec!["s4", "S17"], None)]);
    assert_eq!((answer.rationale(), answer.output_tokens()), ("", None));
    assert!(mcp(&json!({ "name": "read_file", "arguments": { "path": "a.rs" } }))?.calls().is_empty());
    Ok(())
}

#[test]
fn a_program_makes_answers_too() {
    let answer = Answer::prune(["s4"]).summarize(["s9"], "Failed.").with_rationale("Superseded.").spent(7);
    assert_eq!(calls(&answer), [(None, PRUNE, vec!["s4"], None), (None, SUMMARIZE, vec!["s9"], Some("Failed."))]);
    assert_eq!((answer.rationale(), answer.output_tokens()), ("Superseded.", Some(7)));
}

/// Sets what a JSON pointer names.
fn set(mut response: Value, at: &str, to: Value) -> Value {
    if let Some(value) = response.pointer_mut(at) {
        *value = to;
        return response;
    }
    panic!("nothing at {at}")
}

/// The reason in an error for an answer that ended badly, with the kind of end.
fn end(outcome: Result<Answer, AnswerError>) -> (&'static str, String) {
    match outcome {
        Err(AnswerError::Truncated { reason, .. }) => ("truncated", reason),
        Err(AnswerError::Refused { reason, .. }) => ("refused", reason),
        Err(AnswerError::Unfinished { reason, .. }) => ("unfinished", reason),
        Err(AnswerError::Failed { message, .. }) => ("failed", message),
        other => ("other", format!("{other:?}")),
    }
}

#[test]
fn only_a_finished_answer_is_taken() {
    let chat_ends = |reason: &str| end(chat(&set(chat_response(), "/choices/0/finish_reason", json!(reason))));
    let anthropic_ends = |reason: &str| end(anthropic(&set(anthropic_response(), "/stop_reason", json!(reason))));
    let gemini_ends = |reason: &str| end(gemini(&set(gemini_response(), "/candidates/0/finishReason", json!(reason))));
    let responses_ends = |status: &str, reason: Value| {
        let response = set(responses_response(), "/status", json!(status));
        end(responses(&set(response, "/incomplete_details", json!({ "reason": reason }))))
    };
    let said = |kind, reason: &str| (kind, reason.to_owned());

    assert_eq!(chat_ends("length"), said("truncated", "length"));
    assert_eq!(chat_ends("content_filter"), said("refused", "content_filter"));
    assert_eq!(chat_ends("function_call"), said("unfinished", "function_call"));
    assert_eq!(anthropic_ends("max_tokens"), said("truncated", "max_tokens"));
    assert_eq!(anthropic_ends("model_context_window_exceeded"), said("truncated", "model_context_window_exceeded"));
    assert_eq!(anthropic_ends("refusal"), said("refused", "refusal"));
    assert_eq!(anthropic_ends("pause_turn"), said("unfinished", "pause_turn"));
    assert_eq!(anthropic_ends("stop_sequence"), said("unfinished", "stop_sequence"));
    assert_eq!(gemini_ends("MAX_TOKENS"), said("truncated", "MAX_TOKENS"));
    assert_eq!(gemini_ends("SAFETY"), said("refused", "SAFETY"));
    assert_eq!(gemini_ends("MALFORMED_FUNCTION_CALL"), said("unfinished", "MALFORMED_FUNCTION_CALL"));
    assert_eq!(responses_ends("incomplete", json!("max_output_tokens")), said("truncated", "max_output_tokens"));
    assert_eq!(responses_ends("incomplete", json!("content_filter")), said("refused", "content_filter"));
    assert_eq!(responses_ends("incomplete", Value::Null), said("unfinished", "incomplete"));
    assert_eq!(responses_ends("in_progress", Value::Null), said("unfinished", "in_progress"));
    let item = set(responses_response(), "/output/3/status", json!("incomplete"));
    assert_eq!(end(responses(&item)), said("unfinished", "incomplete"));
}

#[test]
fn a_refusal_in_words_is_a_refusal() {
    let words = ("refused", "I can't help with that.".to_owned());
    let refusal = set(chat_response(), "/choices/0/message/refusal", json!(words.1));
    assert_eq!(end(chat(&refusal)), words);
    let part = json!([{ "type": "refusal", "refusal": words.1 }]);
    assert_eq!(end(responses(&set(responses_response(), "/output/1/content", part))), words);
    let blocked = json!({ "promptFeedback": { "blockReason": "SAFETY" }, "usageMetadata": { "promptTokenCount": 9 } });
    assert_eq!(end(gemini(&blocked)), ("refused", "SAFETY".to_owned()));
}

#[test]
fn an_error_body_is_no_answer() {
    let error = |body: Value| [chat, responses, anthropic, gemini, mcp].map(|read: Read| end(read(&body)));
    let openai =
        json!({ "error": { "message": "Rate limit reached", "type": "requests", "param": null, "code": null } });
    let overloaded = json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } });
    let status = json!({ "error": { "code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE" } });
    let rpc = json!({ "jsonrpc": "2.0", "id": 3, "error": { "code": -32602, "message": "Unknown tool" } });
    let proxy = json!({ "error": "upstream timed out" });
    assert_eq!(error(openai), [0; 5].map(|_| ("failed", "Rate limit reached".to_owned())));
    assert_eq!(error(overloaded), [0; 5].map(|_| ("failed", "Overloaded".to_owned())));
    assert_eq!(error(status), [0; 5].map(|_| ("failed", "The model is overloaded.".to_owned())));
    assert_eq!(error(rpc), [0; 5].map(|_| ("failed", "Unknown tool".to_owned())));
    assert_eq!(error(proxy), [0; 5].map(|_| ("failed", "upstream timed out".to_owned())));
    let failed =
        json!({ "status": "failed", "error": { "code": "server_error", "message": "x".repeat(9_999) }, "output": [] });
    assert_eq!(end(responses(&failed)), ("failed", "x".repeat(200)));
}

#[test]
fn another_providers_response_is_named_as_such() {
    let places = |response: Value| {
        [chat, responses, anthropic, gemini, mcp].map(|read: Read| match read(&response) {
            Err(AnswerError::NotAResponse { at, .. }) => at,
            _ => "",
        })
    };
    let [openai, claude] = [places(chat_response()), places(anthropic_response())];
    assert_eq!(openai, ["", "/status", "/stop_reason", "/candidates/0/finishReason", "/name"]);
    assert_eq!(claude, ["/choices/0/finish_reason", "/status", "", "/candidates/0/finishReason", "/name"]);
    assert_eq!(places(json!({ "choices": [{ "finish_reason": "stop" }] }))[0], "/choices/0/message");
    assert_eq!(places(json!({ "status": "completed", "output": {} }))[1], "/output");
    for other in [json!(null), json!([]), json!("stop"), json!({})] {
        assert!(places(other).iter().all(|at| !at.is_empty()));
    }
}

/// One call in each provider's shape; text where the provider gives text.
fn called(tool: &str, arguments: &Value) -> [(Read, Value); 5] {
    let text = arguments.to_string();
    [
        (
            chat as Read,
            json!({ "choices": [{ "finish_reason": "stop", "message": { "tool_calls": [
            { "id": "1", "type": "function", "function": { "name": tool, "arguments": text } },
        ] } }] }),
        ),
        (
            responses,
            json!({ "status": "completed", "output": [
            { "type": "function_call", "call_id": "1", "name": tool, "arguments": text },
        ] }),
        ),
        (
            anthropic,
            json!({ "stop_reason": "tool_use", "content": [
            { "type": "tool_use", "id": "1", "name": tool, "input": arguments },
        ] }),
        ),
        (
            gemini,
            json!({ "candidates": [{ "finishReason": "STOP", "content": { "parts": [
            { "functionCall": { "name": tool, "args": arguments } },
        ] } }] }),
        ),
        (mcp, json!({ "name": tool, "arguments": arguments })),
    ]
}

/// What each of the five says of these arguments.
fn say(tool: &str, arguments: Value) -> Vec<String> {
    let said = called(tool, &arguments).into_iter().map(|(read, response)| match read(&response) {
        Err(error) => error.to_string(),
        Ok(answer) => format!("{answer:?}"),
    });
    let mut said: Vec<_> = said.collect();
    said.dedup();
    said
}

#[test]
fn arguments_are_what_the_schema_says_or_an_error() {
    let prune = |arguments| say(PRUNE, arguments);
    let many: Vec<_> = (0..201).map(|number| format!("s{number}")).collect();
    assert_eq!(prune(json!({})), ["call 1 (`prune_context`): the array of `spans` or `lanes` is missing: ask again"]);
    assert_eq!(
        prune(json!({ "spans": "s4" })),
        ["call 1 (`prune_context`): spans should be an array and is a string: ask again"]
    );
    assert_eq!(
        prune(json!({ "spans": null })),
        ["call 1 (`prune_context`): spans should be an array and is null: ask again"]
    );
    assert_eq!(
        prune(json!({ "lanes": ["work", 4] })),
        ["call 1 (`prune_context`): lanes[1] should be a string and is a number: ask again"]
    );
    assert_eq!(
        prune(json!({ "spans": [["s4"]] })),
        ["call 1 (`prune_context`): spans[0] should be a string and is an array: ask again"]
    );
    let unknown = |field: &str| {
        [format!(
            "call 1 (`prune_context`): the schema has no field `{field}` here, and what it asks for is unknown: ask again"
        )]
    };
    assert_eq!(prune(json!({ "spans": ["s4"], "until": "s9" })), unknown("until"));
    assert_eq!(prune(json!({ "spans": ["s4"], "summary": "x" })), unknown("summary"));
    assert_eq!(prune(json!({ "spans": ["s4"], "lanes": ["work"] })), unknown("spans"));
    assert_eq!(
        prune(json!({ "spans": many })),
        ["call 1 (`prune_context`): more than 200 names, and 200 is the most that is offered: ask again"]
    );
    assert_eq!(
        say(SUMMARIZE, json!({ "spans": ["s4"] })),
        ["call 1 (`summarize_context`): `summary` is missing: ask again"]
    );
    assert_eq!(
        say(SUMMARIZE, json!({ "spans": ["s4"], "summary": ["x"] })),
        ["call 1 (`summarize_context`): summary should be a string and is an array: ask again"]
    );
    assert_eq!(
        say(SUMMARIZE, json!({ "spans": ["s4"], "summary": "x".repeat(1 << 20) })),
        [
            "call 1 (`summarize_context`): its arguments take more than 1048576 bytes: lower the output limit, then ask again"
        ]
    );
}

fn chat_with(tool: &str, arguments: &str) -> Result<Answer, AnswerError> {
    let call = json!({ "function": { "name": tool, "arguments": arguments } });
    chat(&json!({ "choices": [{ "finish_reason": "tool_calls", "message": { "tool_calls": [call] } }] }))
}

#[test]
fn arguments_in_text_are_json_of_an_object() {
    for wrong in ["", "null", "4", "[\"s4\"]", "\"{}\""] {
        let outcome = chat_with(PRUNE, wrong);
        let json = matches!(outcome, Err(AnswerError::Json { .. }));
        assert!(json == wrong.is_empty() && (json || matches!(outcome, Err(AnswerError::Type { .. }))), "{wrong}");
    }
    let fenced = "```json\n{\"spans\": [\"s4\"]}\n```";
    let twice = "{\"spans\": [\"s4\"]} {\"spans\": [\"s5\"]}";
    let deep = format!("{{\"spans\": {}", "[".repeat(100_000));
    for wrong in [fenced, twice, deep.as_str()] {
        assert!(matches!(chat_with(PRUNE, wrong), Err(AnswerError::Json { call: 1, .. })));
    }
    let large = format!("{{\"spans\": [\"s4\"{}]}}", " ".repeat(1 << 20));
    assert!(matches!(chat_with(PRUNE, &large), Err(AnswerError::TooLarge { .. })));
    for repeated in ["{\"spans\": [\"s4\"], \"spans\": []}", "{\"spans\": [\"s4\"], \"\\u0073pans\": [\"s4\"]}"] {
        assert!(matches!(chat_with(PRUNE, repeated), Err(AnswerError::RepeatedField { field: "spans", .. })));
    }
    let summaries = "{\"spans\": [], \"summary\": \"a\", \"summary\": \"b\"}";
    assert!(matches!(chat_with(SUMMARIZE, summaries), Err(AnswerError::RepeatedField { field: "summary", .. })));
}

#[test]
fn one_bad_call_refuses_the_whole_answer_and_is_counted() {
    let response = set(anthropic_response(), "/content/4/input/summary", json!(3));
    let outcome = anthropic(&response).map_err(|error| error.to_string());
    assert_eq!(
        outcome.err().as_deref(),
        Some("call 2 (`summarize_context`): summary should be a string and is a number: ask again")
    );
}

/// A value nested deeper than any parser makes.
#[test]
fn depth_is_never_walked_by_recursion() {
    let deep = |levels: usize, outer: fn(Value) -> Value| (0..levels).fold(json!(null), |inner, _| outer(inner));
    let array = |inner| Value::Array(vec![inner]);
    let responses: [(Read, Value); 3] = [
        (anthropic, set(anthropic_response(), "/content/3/input/spans", deep(1_000_000, array))),
        (
            gemini,
            set(gemini_response(), "/candidates/0/content/parts/3/functionCall/args/spans", deep(1_000_000, array)),
        ),
        (mcp, set(mcp_response(), "/arguments/spans", deep(1_000_000, array))),
    ];
    for (read, response) in responses {
        assert!(matches!(read(&response), Err(AnswerError::Type { found: "an array", .. })));
        // Dropping it would recurse.
        forget(response);
    }
    let items = |inner| Value::Object(Map::from_iter([("items".to_owned(), inner)]));
    let mut tool = json!({ "name": "prune", "inputSchema": { "type": "object", "properties": { "spans": null } } });
    tool["inputSchema"]["properties"]["spans"] = deep(10_000, items);
    assert_eq!(check(Mcp, &tool), Ok(()));
    forget(tool);
}

fn schema(properties: Value, required: Value) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn strict(name: &str, schema: Value) -> Value {
    json!({ "type": "function", "name": name, "description": "Prunes.", "parameters": schema, "strict": true })
}

fn claude(schema: Value) -> Value {
    json!({ "name": "prune", "input_schema": schema, "strict": true })
}

fn offer(values: usize, length: usize) -> Value {
    let names: Vec<_> = (0..values).map(|number| format!("{number:0length$}")).collect();
    schema(json!({ "spans": { "type": "array", "items": { "type": "string", "enum": names } } }), json!(["spans"]))
}

/// What is over a limit, with the limit and what was found; each beside a definition that is just within it.
fn over(outcome: Result<(), LimitError>) -> Option<(&'static str, usize, usize)> {
    match outcome {
        Err(LimitError::Most { what, most, found, .. }) => Some((what, most, found)),
        _ => None,
    }
}

#[test]
fn every_limit_is_checked_at_its_edge() {
    let open_ai = |schema: Value| check(OpenAiResponses, &strict("prune", schema));
    let nested = |levels: usize| {
        (1..levels).fold(schema(json!({}), json!([])), |inner, _| schema(json!({ "a": inner }), json!(["a"])))
    };
    let wide = |properties: usize| {
        let names: Vec<_> = (0..properties).map(|number| number.to_string()).collect();
        let fields: Map<_, _> = names.iter().map(|name| (name.clone(), json!({ "type": "string" }))).collect();
        schema(json!(fields), json!(names))
    };
    let optional = |optional: usize| {
        let fields: Map<_, _> = (0..optional).map(|number| (number.to_string(), json!({ "type": "string" }))).collect();
        check(Anthropic, &claude(schema(json!(fields), json!([]))))
    };
    let unions = |unions: usize| {
        let names: Vec<_> = (0..unions).map(|number| number.to_string()).collect();
        let union = json!({ "type": ["string", "null"] });
        let fields: Map<_, _> = names.iter().map(|name| (name.clone(), union.clone())).collect();
        check(Anthropic, &claude(schema(json!(fields), json!(names))))
    };
    let named =
        |characters: usize| check(Mcp, &json!({ "name": "a".repeat(characters), "inputSchema": { "type": "object" } }));
    let described = |characters: usize| {
        let function =
            json!({ "name": "a", "description": "é".repeat(characters), "parameters": schema(json!({}), json!([])) });
        check(OpenAiChat, &json!({ "type": "function", "function": function }))
    };
    assert_eq!(
        (open_ai(offer(1_000, 5)), over(open_ai(offer(1_001, 5)))),
        (Ok(()), Some(("enum values", 1_000, 1_001)))
    );
    let long = "characters in an enum of more than 250 values";
    assert_eq!((open_ai(offer(300, 50)), over(open_ai(offer(300, 51)))), (Ok(()), Some((long, 15_000, 15_300))));
    let text = "characters of names and enum values";
    assert_eq!((open_ai(offer(200, 599)), over(open_ai(offer(200, 600)))), (Ok(()), Some((text, 120_000, 120_005))));
    assert_eq!((open_ai(nested(10)), over(open_ai(nested(11)))), (Ok(()), Some(("nested objects", 10, 11))));
    assert_eq!((open_ai(wide(5_000)), over(open_ai(wide(5_001)))), (Ok(()), Some(("properties", 5_000, 5_001))));
    let one = schema(json!({ "a": { "type": "string" } }), json!([]));
    assert_eq!(over(open_ai(one)), Some(("optional properties", 0, 1)));
    assert_eq!((optional(24), over(optional(25))), (Ok(()), Some(("optional properties", 24, 25))));
    assert_eq!((unions(16), over(unions(17))), (Ok(()), Some(("unions", 16, 17))));
    assert_eq!((named(128), over(named(129))), (Ok(()), Some(("characters of name", 128, 129))));
    assert_eq!((described(1_024), over(described(1_025))), (Ok(()), Some(("characters of description", 1_024, 1_025))));
}

#[test]
fn schemas_within_schemas_are_checked() {
    let either = json!({ "anyOf": [{ "type": "null" }, { "properties": {} }] });
    let refused = |provider| Err(LimitError::NotClosed { provider, at: "/properties/a/anyOf/1".to_owned() });
    let definition = strict("prune", schema(json!({ "a": either }), json!(["a"])));
    assert_eq!(check(OpenAiResponses, &definition), refused("OpenAI Responses"));
    // Responses is strict unless told otherwise.
    let mut unsaid = definition.clone();
    unsaid.as_object_mut().map(|tool| tool.remove("strict"));
    assert_eq!(check(OpenAiResponses, &unsaid), refused("OpenAI Responses"));
    assert_eq!(check(OpenAiResponses, &set(definition, "/strict", json!(false))), Ok(()));
    let mut shared = schema(json!({ "a": { "$ref": "#/$defs/b" } }), json!(["a"]));
    shared["$defs"] = json!({ "b": { "type": "object" } });
    let open = Err(LimitError::NotClosed { provider: "Anthropic", at: "/$defs/b".to_owned() });
    assert_eq!(check(Anthropic, &claude(shared)), open);
    let unions = |unions: usize| {
        let fields: Map<_, _> = (0..unions).map(|number| (number.to_string(), json!({ "anyOf": [] }))).collect();
        check(Anthropic, &claude(schema(json!(fields), json!([]))))
    };
    assert_eq!((unions(16), over(unions(17))), (Ok(()), Some(("unions", 16, 17))));
}

#[test]
fn what_a_provider_refuses_is_named() {
    let open = json!({ "type": "object", "properties": { "a": { "type": "object", "properties": {} } }, "required": ["a"], "additionalProperties": false });
    let at = "/properties/a".to_owned();
    assert_eq!(
        check(Anthropic, &claude(open.clone())),
        Err(LimitError::NotClosed { provider: "Anthropic", at: at.clone() })
    );
    assert_eq!(check(Mcp, &json!({ "name": "prune", "inputSchema": open })), Ok(()));
    let with = |field: Value| schema(json!({ "a": field }), json!(["a"]));
    let one_of = with(json!({ "oneOf": [{ "const": "s4", "description": "The fourth." }] }));
    let keyword = |provider, keyword| Err(LimitError::Keyword { provider, keyword, at: at.clone() });
    assert_eq!(check(OpenAiResponses, &strict("prune", one_of)), keyword("OpenAI Responses", "oneOf"));
    let bounded = with(json!({ "type": "string", "maxLength": 9 }));
    assert_eq!(check(Anthropic, &claude(bounded.clone())), keyword("Anthropic", "maxLength"));
    assert_eq!(check(OpenAiResponses, &strict("prune", bounded)), Ok(()));
    for values in [json!([]), json!(["s4", "s4"])] {
        let refused = Err(LimitError::Enum { at: at.clone() });
        let schema = with(json!({ "type": "string", "enum": values }));
        assert_eq!(check(Gemini, &json!({ "name": "prune", "parametersJsonSchema": schema })), refused);
    }
    let name = |name: &str| check(Gemini, &json!({ "name": name, "parametersJsonSchema": { "type": "object" } }));
    assert_eq!(name("_prune-context"), Ok(()));
    for wrong in ["", "4prune", "prune context", "präne"] {
        assert_eq!(name(wrong), Err(LimitError::Name { provider: "Gemini", name: wrong.to_owned() }));
    }
    let missing = |at| Err(LimitError::NotADefinition { provider: "OpenAI Chat", at });
    assert_eq!(check(OpenAiChat, &strict("prune", offer(1, 1))), missing("the tool object"));
    assert_eq!(check(OpenAiChat, &json!({ "function": {} })), missing("its name"));
    let array = json!({ "function": { "name": "prune", "parameters": { "type": "array" } } });
    assert_eq!(check(OpenAiChat, &array), missing("the schema of an object"));
}

fn json_value() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        Just("spans".to_owned()),
        Just("prune_context".to_owned()),
        Just("arguments".to_owned()),
        Just("{\"spans\":[\"s4\"]}".to_owned()),
        Just("{\"spans\":[".to_owned()),
        Just("tool_use".to_owned()),
        Just("error".to_owned()),
        ".{0,8}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((word.clone(), inner), 0..5)
                .prop_map(|fields| Value::from(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Every place in a value, as JSON pointers.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Array(entries) => entries.iter().enumerate().for_each(|(i, v)| places(v, &format!("{at}/{i}"), found)),
        Value::Object(fields) => fields.iter().for_each(|(key, v)| places(v, &format!("{at}/{key}"), found)),
        _ => {}
    }
}

/// Every string in a value, those in strings that hold JSON included.
fn strings(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            if let Ok(inner) = serde_json::from_str(text) {
                strings(&inner, found);
            }
            found.insert(text.clone());
        }
        Value::Array(entries) => entries.iter().for_each(|entry| strings(entry, found)),
        Value::Object(fields) => fields.values().for_each(|value| strings(value, found)),
        _ => {}
    }
}

/// Whether an answer names only what stood in the response.
fn invents_nothing(answer: &Answer, response: &Value) -> bool {
    let mut found = BTreeSet::new();
    strings(response, &mut found);
    let calls = || answer.calls().iter();
    calls().flat_map(|call| call.names()).all(|name| found.contains(name))
        && calls().filter_map(|call| call.summary()).all(|summary| found.contains(summary))
        && calls().all(|call| (call.tool() == SUMMARIZE) == call.summary().is_some())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Any JSON is an answer or an error, and any JSON can be checked.
    #[test]
    fn any_json_is_read_without_panic(value in json_value()) {
        for read in [chat, responses, anthropic, gemini, mcp] as [Read; 5] {
            prop_assert!(read(&value).map_or(true, |answer| invents_nothing(&answer, &value)));
        }
        for call in called(PRUNE, &value).into_iter().chain(called(SUMMARIZE, &value)) {
            let (read, response) = call;
            prop_assert!(read(&response).map_or(true, |answer| invents_nothing(&answer, &response)));
        }
        let schema = schema(json!({ "a": value }), json!(["a"]));
        for schema in [&schema, &value] {
            let strict = check(OpenAiResponses, &strict("prune", schema.clone()));
            let plain = check(Mcp, &json!({ "name": "prune", "inputSchema": schema }));
            prop_assert!(strict.is_err() || plain.is_ok());
        }
    }

    /// A real answer with anything in any one place never gives a call that was not in it.
    #[test]
    fn a_spoiled_answer_gives_no_other_call(which in 0..5_usize, place in any::<prop::sample::Index>(), spoil in json_value()) {
        let (read, response): (Read, Value) = match which {
            0 => (chat, chat_response()),
            1 => (responses, responses_response()),
            2 => (anthropic, anthropic_response()),
            3 => (gemini, gemini_response()),
            _ => (mcp, mcp_response()),
        };
        let mut at = Vec::new();
        places(&response, "", &mut at);
        let spoiled = set(response, &at[place.index(at.len())], spoil);
        prop_assert!(read(&spoiled).map_or(true, |answer| invents_nothing(&answer, &spoiled)));
    }

    /// Arguments that were cut off anywhere are refused, not completed.
    #[test]
    fn cut_arguments_are_never_repaired(names in prop::collection::vec("[a-z0-9_]{1,6}", 1..9), at in any::<prop::sample::Index>()) {
        let whole = json!({ "spans": names }).to_string();
        let outcome = chat_with(PRUNE, &whole);
        prop_assert_eq!(outcome.ok().map(|answer| answer.calls()[0].names().to_vec()), Some(names));
        let cut = &whole[..at.index(whole.len())];
        let refused = matches!(chat_with(PRUNE, cut), Err(AnswerError::Json { .. }));
        prop_assert!(refused);
    }
}
