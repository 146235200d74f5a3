use serde_json::{Value, json};

use super::*;

type Outcome = Result<(), Box<dyn std::error::Error>>;

// What is sent, written out; a definition is an envelope with one of each of the rest in it.
const CHAT: &str = r#"{
    "type": "function",
    "function": { "name": NAME, "description": DESCRIPTION, "parameters": SCHEMA, "strict": true }
}"#;
const RESPONSES: &str =
    r#"{ "type": "function", "name": NAME, "description": DESCRIPTION, "parameters": SCHEMA, "strict": true }"#;
const ANTHROPIC: &str = r#"{ "name": NAME, "description": DESCRIPTION, "input_schema": SCHEMA, "strict": true }"#;
const GEMINI: &str = r#"{ "name": NAME, "description": DESCRIPTION, "parametersJsonSchema": SCHEMA }"#;
const MCP: &str = r#"{ "name": NAME, "description": DESCRIPTION, "inputSchema": SCHEMA }"#;

const PRUNE_SPANS: [&str; 3] = [
    r#""prune_context""#,
    r#""Moves the named messages out of the context to free tokens. Each stays stored word for word, and its id stays in the context. Name only messages whose text no later step needs in view. Say why in one sentence beside the call.""#,
    r#"{
        "type": "object",
        "properties": { "spans": { "type": "array", "items": { "type": "string", "enum": ["s4", "s17"] } } },
        "required": ["spans"],
        "additionalProperties": false
    }"#,
];
const PRUNE_LANES: [&str; 3] = [
    r#""prune_context""#,
    r#""Moves the named lanes' older messages out of the context to free tokens. Each stays stored word for word, and its id stays in the context. Name only lanes whose text no later step needs in view. Say why in one sentence beside the call.""#,
    r#"{
        "type": "object",
        "properties": { "lanes": { "type": "array", "items": { "type": "string", "enum": ["schema", "work"] } } },
        "required": ["lanes"],
        "additionalProperties": false
    }"#,
];
const SUMMARIZE_SPANS: [&str; 3] = [
    r#""summarize_context""#,
    r#""Puts your summary in the place of the named messages to free tokens. They stay stored word for word, and the summary names their ids. It must be shorter than what it replaces and keep every condition and limit.""#,
    r#"{
        "type": "object",
        "properties": {
            "spans": { "type": "array", "items": { "type": "string", "enum": ["s4", "s17"] } },
            "summary": { "type": "string" }
        },
        "required": ["spans", "summary"],
        "additionalProperties": false
    }"#,
];
const SUMMARIZE_LANES: [&str; 3] = [
    r#""summarize_context""#,
    r#""Puts your summary in the place of the named lanes' older messages to free tokens. They stay stored word for word, and the summary names their ids. It must be shorter than what it replaces and keep every condition and limit.""#,
    r#"{
        "type": "object",
        "properties": {
            "lanes": { "type": "array", "items": { "type": "string", "enum": ["schema", "work"] } },
            "summary": { "type": "string" }
        },
        "required": ["lanes", "summary"],
        "additionalProperties": false
    }"#,
];

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn ids(most: u64) -> Vec<String> {
    (1..=most).map(|number| format!("s{number}")).collect()
}

fn sends<P: Provider>(_: P, tool: &Tool, envelope: &str, [name, description, schema]: [&str; 3]) -> Outcome {
    let expected = envelope.replace("NAME", name).replace("DESCRIPTION", description).replace("SCHEMA", schema);
    let expected: Value = serde_json::from_str(&expected)?;
    assert_eq!(tool.definition::<P>(), Some(expected), "{}", P::NAME);
    Ok(())
}

#[test]
fn definitions_are_what_each_provider_takes() -> Outcome {
    let (spans, lanes) = (owned(&["s4", "s17"]), owned(&["schema", "work"]));
    for (tool, parts) in [
        (Tool::prune::<Dynamic>(spans.clone()), PRUNE_SPANS),
        (Tool::prune::<Static>(lanes.clone()), PRUNE_LANES),
        (Tool::summarize::<Dynamic>(spans), SUMMARIZE_SPANS),
        (Tool::summarize::<Static>(lanes), SUMMARIZE_LANES),
    ] {
        sends(OpenAiChat, &tool, CHAT, parts)?;
        sends(OpenAiResponses, &tool, RESPONSES, parts)?;
        sends(Anthropic, &tool, ANTHROPIC, parts)?;
        sends(Gemini, &tool, GEMINI, parts)?;
        sends(Mcp, &tool, MCP, parts)?;
    }
    Ok(())
}

#[test]
fn nothing_to_offer_is_no_tool() {
    assert_eq!(Tool::prune::<Dynamic>(Vec::new()).definition::<Mcp>(), None);
    assert_eq!(Tool::summarize::<Static>(Vec::new()).definition::<OpenAiChat>(), None);
}

#[test]
fn more_than_the_most_is_said() {
    let tool = Tool::prune::<Dynamic>(ids(250));
    assert_eq!(tool.names, ids(200));
    assert!(tool.description.ends_with(" 200 of 250 are offered this time."));
    assert_eq!(Tool::prune::<Dynamic>(ids(200)).description, Dynamic::PRUNE);
}

fn fits<P: Provider>(provider: P, tool: &Tool) -> Outcome {
    Ok(check(provider, &tool.definition::<P>().ok_or("no definition")?)?)
}

#[test]
fn every_size_fits_every_provider() -> Outcome {
    // The longest ids there are, and lane names longer than anyone writes.
    let ids: Vec<_> = (u64::MAX.saturating_sub(199)..=u64::MAX).map(|number| format!("s{number}")).collect();
    let lanes: Vec<_> = (0..200).map(|lane| format!("{}{lane}", "lane_".repeat(50))).collect();
    assert_eq!((ids.len(), lanes.len()), (MAX_OFFERED, MAX_OFFERED));
    for size in 1..=MAX_OFFERED {
        let first = |names: &[String]| names.iter().take(size).cloned().collect::<Vec<_>>();
        for tool in [
            Tool::prune::<Dynamic>(first(&ids)),
            Tool::prune::<Static>(first(&lanes)),
            Tool::summarize::<Dynamic>(first(&ids)),
            Tool::summarize::<Static>(first(&lanes)),
        ] {
            fits(OpenAiChat, &tool)?;
            fits(OpenAiResponses, &tool)?;
            fits(Anthropic, &tool)?;
            fits(Gemini, &tool)?;
            fits(Mcp, &tool)?;
        }
    }
    Ok(())
}

#[test]
fn requests_say_which_array_they_name() -> Outcome {
    let arguments = r#"{"summary": "All four fail.", "lanes": ["Work"]}"#;
    let response = json!({
        "status": "completed",
        "output": [
            { "type": "function_call", "name": "prune_context", "arguments": r#"{"spans": []}"# },
            { "type": "function_call", "name": "summarize_context", "arguments": arguments },
        ],
    });
    let answer = Answer::read(OpenAiResponses, &response)?.summarize(["s1"], "One.");
    let requests: Vec<_> = answer.requests()?.cloned().collect();
    let expected = [
        Request::Prune { property: Some("spans"), names: Vec::new() },
        Request::Summarize { property: Some("lanes"), names: owned(&["Work"]), summary: "All four fail.".to_owned() },
        Request::Summarize { property: None, names: owned(&["s1"]), summary: "One.".to_owned() },
    ];
    assert_eq!(requests, expected);
    Ok(())
}

#[test]
fn no_call_is_no_request() -> Outcome {
    let response = json!({ "choices": [{ "finish_reason": "stop", "message": { "content": "Keep all of it." } }] });
    let answer = Answer::read(OpenAiChat, &response)?;
    assert_eq!(answer.rationale(), "Keep all of it.");
    assert!(matches!(answer.requests().map(Iterator::count), Err(AnswerError::NoCall)));
    Ok(())
}
