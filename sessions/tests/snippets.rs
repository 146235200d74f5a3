//! What the corpus does not show of the formats, in snippets written by hand.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test may panic"
)]

mod support;

use keepspan_sessions::{CompactionKind, EntryKind, Format};
use support::{Given, give};

fn read(lines: &[&str], format: Format) -> Given {
    give((lines.join("\n") + "\n").as_bytes(), format).unwrap_or_else(|error| panic!("{error}"))
}

/// The kind and text of each entry.
fn said(given: &Given) -> Vec<(EntryKind, &str)> {
    given.entries.iter().map(|(_, entry)| (entry.kind, &*entry.text)).collect()
}

use EntryKind::{Human, Model, Notice, Result, System, Thinking};

#[test]
fn pi_compaction_counts_records() {
    let given = read(
        &[
            r#"{"type":"session","id":"s"}"#,
            r#"{"type":"message","message":{"role":"user","content":"one"}}"#,
            r#"{"type":"model_change"}"#,
            r#"{"type":"message","message":{"role":"user","content":"two"}}"#,
            r#"{"type":"compaction","summary":"sum","tokensBefore":9,"firstKeptEntryIndex":3}"#,
        ],
        Format::Pi,
    );
    let [(2, compaction)] = &given.compactions[..] else { panic!("{:?}", given.compactions) };
    let kind = CompactionKind::Summary { text: Some("sum".into()), kept_from: Some(1) };
    assert_eq!((&compaction.kind, compaction.tokens_before), (&kind, Some(9)));
}

#[test]
fn pi_commands_of_the_person() {
    let given = read(
        &[
            r#"{"type":"message","message":{"role":"assistant","content":[{"type":"toolCall","id":"1","name":"bash","arguments":{}}]}}"#,
            r#"{"type":"message","message":{"role":"bashExecution","command":"ls","output":"a","exitCode":2,"cancelled":false}}"#,
        ],
        Format::Pi,
    );
    assert_eq!(said(&given)[1], (Result, "Ran `ls`\n```\na\n```\n\nCommand exited with code 2"));
    assert!(given.entries[1].1.orphan && given.entries[1].1.failed);
    // It answers no call of the model.
    assert_eq!([given.repairs("orphan-result"), given.repairs("unanswered-call")], [1, 1]);
}

#[test]
fn claude_code_sidechains_and_copies() {
    let main =
        r#"{"type":"user","isSidechain":false,"sessionId":"s","uuid":"1","message":{"role":"user","content":"main"}}"#;
    let side =
        r#"{"type":"user","isSidechain":true,"sessionId":"s","uuid":"2","message":{"role":"user","content":"side"}}"#;
    let given = read(&[main, side, main], Format::ClaudeCode);
    assert_eq!(said(&given), [(Human, "main")]);
    assert_eq!([given.left_out("sidechain"), given.left_out("repeated record")], [1, 1]);
    // The file of a sub-agent is its session.
    assert_eq!(said(&read(&[side], Format::ClaudeCode)), [(Human, "side")]);
}

#[test]
fn claude_code_thinking_without_text() {
    let given = read(
        &[
            r#"{"type":"assistant","message":{"id":"m","content":[{"type":"thinking","thinking":"","signature":"c2ln"}]}}"#,
            r#"{"type":"assistant","message":{"id":"m","content":[{"type":"redacted_thinking","data":"b3Bh"}]}}"#,
            r#"{"type":"assistant","message":{"id":"x","model":"<synthetic>","content":[{"type":"text","text":"API Error"}]}}"#,
        ],
        Format::ClaudeCode,
    );
    assert_eq!(said(&given), [(Thinking, "c2ln"), (Thinking, "b3Bh"), (Notice, "API Error")]);
}

#[test]
fn copilot() {
    let given = read(
        &[
            r#"{"type":"session.start","data":{"sessionId":"s1"},"id":"1","parentId":null}"#,
            r#"{"type":"system.message","data":{"content":"be good"}}"#,
            r#"{"type":"user.message","data":{"content":"go","transformedContent":"<file/> go"}}"#,
            r#"{"type":"hook.start","data":{"content":"go"}}"#,
            r#"{"type":"assistant.message","data":{"messageId":"m","content":"on it","reasoningOpaque":"b3Bh","toolRequests":[{"toolCallId":"a","name":"view","arguments":{"path":"x"}},{"toolCallId":"b","name":"bash","arguments":{}}]}}"#,
            r#"{"type":"tool.execution_start","data":{"toolCallId":"a"}}"#,
            r#"{"type":"tool.execution_complete","data":{"toolCallId":"b","success":false,"error":{"message":"denied","code":"denied"}}}"#,
            r#"{"type":"tool.execution_complete","data":{"toolCallId":"a","success":true,"result":{"content":"x","detailedContent":"x!"}}}"#,
        ],
        Format::Copilot,
    );
    assert_eq!(&*given.conversations[0].name, "s1");
    let calls = "on it\n{\"id\":\"a\",\"name\":\"view\",\"arguments\":{\"path\":\"x\"}}\n{\"id\":\"b\",\"name\":\"bash\",\"arguments\":{}}";
    assert_eq!(
        said(&given),
        [
            (System, "be good"),
            (Human, "<file/> go"),
            (Thinking, "b3Bh"),
            (Model, calls),
            (Result, "denied"),
            (Result, "x")
        ]
    );
    let results: Vec<_> = given.of_kind(Result).map(|entry| (entry.tool.as_deref().unwrap(), entry.failed)).collect();
    assert_eq!(results, [("bash", true), ("view", false)]);
    assert_eq!((given.report.repair_count(), given.left_out("hook."), given.left_out("tool.")), (0, 1, 1));
}

#[test]
fn openhands_events() {
    let given = read(
        &[
            r#"{"kind":"SystemPromptEvent","id":"e0","source":"agent","system_prompt":{"type":"text","text":"rules"},"tools":[]}"#,
            r#"{"kind":"MessageEvent","id":"e1","source":"user","llm_message":{"role":"user","content":[{"type":"text","text":"do it"}]}}"#,
            r#"{"kind":"ActionEvent","id":"e2","source":"agent","thought":[{"type":"text","text":"look"}],"thinking_blocks":[{"type":"thinking","thinking":"hm","signature":"s"}],"action":{"command":"ls"},"tool_name":"terminal","tool_call_id":"t1","tool_call":{"id":"t1","name":"terminal","arguments":"{\"command\":\"ls\"}"},"llm_response_id":"r1"}"#,
            r#"{"kind":"ObservationEvent","id":"e3","observation":{"content":[{"type":"text","text":"a"}],"is_error":false},"action_id":"e2","tool_name":"terminal","tool_call_id":"t1"}"#,
            r#"{"kind":"Condensation","id":"e4","forgotten_event_ids":["e2","e3"],"summary":"looked"}"#,
            r#"{"kind":"AgentErrorEvent","id":"e5","error":"no such tool","tool_name":"x","tool_call_id":"t9"}"#,
            r#"{"kind":"ConversationStateUpdateEvent","id":"e6"}"#,
        ],
        Format::OpenHands,
    );
    assert_eq!(
        said(&given),
        [
            (System, "rules"),
            (Human, "do it"),
            (Thinking, "hm"),
            (Model, "look\n{\"id\":\"t1\",\"name\":\"terminal\",\"arguments\":{\"command\":\"ls\"}}"),
            (Result, "a"),
            (Result, "no such tool"),
        ]
    );
    let CompactionKind::Forgot { entries, text } = &given.compactions[0].1.kind else { panic!() };
    assert_eq!((&entries[..], text.as_deref()), (&[2, 3, 4][..], Some("looked")));
    let last = &given.entries.last().unwrap().1;
    assert!(last.failed && last.orphan);
}

#[test]
fn gemini_cli_lines_write_a_message_again() {
    let message = |calls: &str| format!(r#"{{"type":"gemini","id":"m","content":"text","toolCalls":[{calls}]}}"#);
    let first = r#"{"id":"a","name":"ls","args":{},"status":"success","result":[{"functionResponse":{"response":{"output":"x"}}}]}"#;
    let second = r#"{"id":"b","name":"rm","args":{},"status":"cancelled","result":[{"functionResponse":{"response":{"error":"no"}}}]}"#;
    let given = read(
        &[
            r#"{"sessionId":"s","projectHash":"h"}"#,
            &message(first),
            &message(&format!("{first},{second}")),
            &message(first),
        ],
        Format::GeminiCli,
    );
    assert_eq!(
        said(&given),
        [
            (Model, "text\n{\"id\":\"a\",\"name\":\"ls\",\"arguments\":{}}"),
            (Result, "x"),
            (Model, "{\"id\":\"b\",\"name\":\"rm\",\"arguments\":{}}"),
            (Result, "{\"error\":\"no\"}"),
        ]
    );
    assert!(given.entries[3].1.failed);
    assert_eq!(given.left_out("repeated message"), 1);
}

#[test]
fn chat_bodies_in_every_shape() {
    let user = r#"{"role":"user","content":"q"}"#;
    let answer = r#"{"choices":[{"message":{"role":"assistant","content":"a"}}]}"#;
    let [body, exchange] = [
        format!(r#"{{"messages":[{user}]}}"#),
        format!(r#"{{"request":{{"body":{{"messages":[{user}]}}}},"response":{{"body":{answer}}}}}"#),
    ];
    for (file, conversations, texts) in [
        (vec![&*body], 1, vec!["q"]),
        (vec![&*body, &*body], 2, vec!["q", "q"]),
        (vec![user, user], 1, vec!["q", "q"]),
        (vec![&*exchange], 1, vec!["q", "a"]),
        (vec![answer], 1, vec!["a"]),
        // The request of the second exchange repeats that of the first, and has no answer yet.
        (vec![&*exchange, &*exchange], 1, vec!["q", "a", "a"]),
    ] {
        let given = read(&file, Format::Chat);
        let found: Vec<_> = said(&given).into_iter().map(|(_, text)| text).collect();
        assert_eq!((given.conversations.len(), found), (conversations, texts), "{file:?}");
        let list = format!("[{}]", file.join(","));
        let given = give(list.as_bytes(), Format::Chat).unwrap();
        assert_eq!(given.entries.len(), said(&given).len(), "{list}");
        assert_eq!(given.conversations.len(), conversations, "{list}");
    }
}

#[test]
fn chat_as_vendors_speak_it() {
    let given = read(
        &[
            r#"{"messages":[{"role":"assistant","content":null,"reasoning":"hm","reasoning_content":"hm","reasoning_details":[],"function_call":null,"name":null,"tool_calls":[{"id":"1","type":"custom","custom":{"name":"grep","input":"a b"},"function":null}]},{"role":"tool","tool_call_id":"1","content":[{"type":"text","text":"r"}]}]}"#,
        ],
        Format::Chat,
    );
    assert_eq!(
        said(&given),
        [(Thinking, "hm"), (Model, "{\"id\":\"1\",\"name\":\"grep\",\"arguments\":\"a b\"}"), (Result, "r")]
    );
    assert_eq!((given.entries[1].1.calls[0].json(), &*given.entries[1].1.calls[0].arguments), (None, "a b"));
}

/// The turn's label and seal, which a span shows to those who print it.
#[test]
fn thinking_and_calls_of_a_message_are_one_turn() {
    let given = read(
        &[
            r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"thinking","thinking":"hm","signature":"s"}]}}"#,
            r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"1","name":"ls","input":{}}]}}"#,
            r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"1","content":"x","is_error":true}]}}"#,
        ],
        Format::ClaudeCode,
    );
    let spans: Vec<_> = given.entries.iter().map(|(_, entry)| format!("{:?}", entry.span)).collect();
    assert!(spans[0].contains("turn: Some(\"m1\"), sealed: true"), "{}", spans[0]);
    assert!(spans[1].contains("Calls([\"1\"]), turn: Some(\"m1\"), sealed: false"), "{}", spans[1]);
    assert!(spans[2].contains("failed: true, part: Answers(\"1\"), turn: None"), "{}", spans[2]);
}

#[test]
fn exchanges_repeat_their_history_in_other_words() {
    let exchange = |messages: &str, answer: &str| {
        format!(
            r#"{{"request":{{"system":"s","messages":[{messages}]}},"response":{{"content":[{{"type":"text","text":"{answer}"}}]}}}}"#
        )
    };
    let first = r#"{"role":"user","content":[{"type":"text","text":"q","cache_control":{"type":"ephemeral"}}]}"#;
    let again = r#"{"content":[{"text":"q","type":"text"}],"role":"user"}"#;
    let echo = r#"{"role":"assistant","content":"a"}"#;
    let lines = [exchange(first, "a"), exchange(&format!("{again},{echo},{again}"), "b")];
    let given = read(&[&lines[0], &lines[1]], Format::Anthropic);
    assert_eq!(said(&given), [(System, "s"), (Human, "q"), (Model, "a"), (Human, "q"), (Model, "b")]);
    assert_eq!(given.left_out("repeated message"), 3);
}

#[test]
fn a_prompt_behind_the_messages_is_late() {
    let given = read(&[r#"{"messages":[{"role":"user","content":"q"}],"system":"s"}"#], Format::Anthropic);
    assert_eq!(said(&given), [(Human, "q"), (System, "s")]);
    assert_eq!(given.repairs("late"), 1);
}

#[test]
fn responses_of_one_turn_are_one() {
    let given = read(
        &[
            r#"{"input":[{"role":"user","content":"q"},{"type":"reasoning","summary":[],"encrypted_content":"b3Bh"},{"type":"function_call","call_id":"c","name":"f","arguments":"{\"a\":1}"},{"type":"function_call_output","call_id":"c","output":"r"},{"type":"local_shell_call","call_id":"d","action":{"command":["ls"]}},{"type":"local_shell_call_output","call_id":"d","output":[{"type":"input_text","text":"x"}]}]}"#,
        ],
        Format::Responses,
    );
    assert_eq!(
        said(&given),
        [
            (Human, "q"),
            (Thinking, "b3Bh"),
            (Model, "{\"id\":\"c\",\"name\":\"f\",\"arguments\":{\"a\":1}}"),
            (Result, "r"),
            (Model, "{\"id\":\"d\",\"name\":\"local_shell\",\"arguments\":{\"command\":[\"ls\"]}}"),
            (Result, "x"),
        ]
    );
    assert_eq!(given.report.repair_count(), 0);
}

#[test]
fn gemini_code_that_the_provider_ran() {
    let given = read(&[r#"{"contents":{"role":"user","parts":[{"text":"q"}]},"x":0}"#, ""], Format::Gemini);
    assert_eq!(said(&given), [(Human, "q")]);
    let given = read(
        &[
            r#"{"contents":[{"role":"model","parts":[{"executableCode":{"language":"PYTHON","code":"1"}},{"codeExecutionResult":{"outcome":"OUTCOME_FAILED","output":"boom"}}]}]}"#,
        ],
        Format::Gemini,
    );
    assert_eq!(said(&given)[1], (Result, "boom"));
    assert!(given.entries[1].1.failed && !given.entries[1].1.orphan);
}

#[test]
fn codex_without_envelopes() {
    let given = read(
        &[
            r#"{"id":"s","timestamp":"t","instructions":"rules","git":{}}"#,
            r#"{"record_type":"state"}"#,
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]}"#,
            r#"{"type":"function_call","name":"shell","arguments":"{}","call_id":"c"}"#,
            r#"{"type":"function_call_output","call_id":"c","output":"done"}"#,
        ],
        Format::Codex,
    );
    assert_eq!(&*given.conversations[0].name, "s");
    let call = "{\"id\":\"c\",\"name\":\"shell\",\"arguments\":{}}";
    assert_eq!(said(&given), [(System, "rules"), (Human, "go"), (Model, call), (Result, "done")]);
    assert_eq!((given.report.repair_count(), given.left_out("state")), (0, 1));
}

#[test]
fn codex_resumes_and_compacts_to_a_message() {
    let meta = r#"{"type":"session_meta","payload":{"id":"s","base_instructions":{"text":"rules"}}}"#;
    let given = read(&[meta, meta, r#"{"type":"compacted","payload":{"message":"so far"}}"#], Format::Codex);
    assert_eq!(said(&given), [(System, "rules")]);
    assert_eq!((given.conversations.len(), given.left_out("session_meta")), (1, 1));
    let kind = CompactionKind::Summary { text: Some("so far".into()), kept_from: None };
    assert_eq!(given.compactions[0].1.kind, kind);
}

#[test]
fn kimi_messages_of_every_role() {
    let message = |message: &str| format!(r#"{{"type":"context.append_message","message":{message}}}"#);
    let given = read(
        &[
            &message(r#"{"role":"system","content":"s"}"#),
            &message(r#"{"role":"user","content":"typed","origin":{"kind":"user"}}"#),
            &message(r#"{"role":"user","content":"put in","origin":{"kind":"injection"}}"#),
            &message(r#"{"role":"assistant","content":"a","toolCalls":[{"id":"1","name":"f","arguments":{}}]}"#),
            &message(r#"{"role":"tool","toolCallId":"1","content":"r"}"#),
            r#"{"type":"context.append_loop_event","event":{"type":"content.part","stepUuid":"u","part":{"type":"text","text":"b"}}}"#,
            r#"{"type":"context.append_loop_event","event":{"type":"tool.call","stepUuid":"u","toolCallId":"2","name":"g","args":{"x":1}}}"#,
            r#"{"type":"context.append_loop_event","event":{"type":"tool.result","toolCallId":"2","result":{"output":[{"type":"text","text":"no"}],"isError":true}}}"#,
        ],
        Format::Kimi,
    );
    assert_eq!(
        said(&given),
        [
            (System, "s"),
            (Human, "typed"),
            (Notice, "put in"),
            (Model, "a\n{\"id\":\"1\",\"name\":\"f\",\"arguments\":{}}"),
            (Result, "r"),
            (Model, "b"),
            (Model, "{\"id\":\"2\",\"name\":\"g\",\"arguments\":{\"x\":1}}"),
            (Result, "no"),
        ]
    );
    assert!(given.entries[7].1.failed && !given.entries[4].1.failed);
}

#[test]
fn openhands_events_as_a_list() {
    let events = r#"[{"kind":"MessageEvent","source":"environment","llm_message":{"role":"user","content":"hint"}},
        {"kind":"ActionEvent","tool_name":"f","tool_call_id":"1","action":{"x":1}},
        {"kind":"ObservationEvent","tool_call_id":"1","observation":{"kind":"Odd","exit_code":1}}]"#;
    let given = give(events.as_bytes(), Format::OpenHands).unwrap();
    assert_eq!(
        said(&given),
        [
            (Notice, "hint"),
            (Model, "{\"id\":\"1\",\"name\":\"f\",\"arguments\":{\"x\":1}}"),
            (Result, "{\"kind\":\"Odd\",\"exit_code\":1}"),
        ]
    );
}

#[test]
fn anthropic_system_blocks_and_pictures() {
    let body = r#"{"system":[{"type":"text","text":"one"},{"type":"text","text":"two"}],"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}},{"type":"document","source":{}}]}]}"#;
    let given = read(&[body], Format::Anthropic);
    assert_eq!(said(&given), [(System, "one"), (System, "two"), (Human, "[picture: https://example.com/a.png]")]);
    assert_eq!([given.repairs("no-picture"), given.repairs("unknown-record")], [1, 1]);
}

/// What a span shows of its part and turn to those who print it.
fn part(given: &Given, number: usize) -> String {
    let span = format!("{:?}", given.entries[number].1.span);
    let (_, part) = span.split_once("part: ").unwrap();
    part.split(", reads").next().unwrap().to_owned()
}

#[test]
fn items_of_one_turn_have_one_label() {
    let item = |kind: &str, rest: &str| format!(r#"{{"type":"{kind}",{rest}}}"#);
    let call = |id: &str| item("function_call", &format!(r#""call_id":"{id}","name":"f","arguments":"{{}}""#));
    let given = read(
        &[&format!(
            r#"{{"input":[{},{},{},{},{}]}}"#,
            item("reasoning", r#""summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"x""#),
            call("a"),
            item("function_call_output", r#""call_id":"a","output":"r""#),
            item("reasoning", r#""summary":[{"type":"summary_text","text":"ok"}]"#),
            call("b"),
        )],
        Format::Responses,
    );
    let parts: Vec<_> = (0..5).map(|number| part(&given, number)).collect();
    assert_eq!(
        parts,
        [
            "None, turn: Some(\"t1\"), sealed: true",
            "Calls([\"a\"]), turn: Some(\"t1\"), sealed: false",
            "Answers(\"a\"), turn: None, sealed: false",
            "None, turn: Some(\"t4\"), sealed: false",
            "Calls([\"b\"]), turn: Some(\"t4\"), sealed: false",
        ]
    );
}

#[test]
fn a_message_of_several_spans_is_a_turn_and_of_one_is_none() {
    let given = read(
        &[
            r#"{"type":"message","message":{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"text","text":"b"},{"type":"toolCall","id":"1","name":"f","arguments":{}}]}}"#,
            r#"{"type":"message","message":{"role":"toolResult","toolCallId":"1","content":[{"type":"text","text":"x"},{"type":"text","text":"y"}]}}"#,
            r#"{"type":"message","message":{"role":"assistant","content":[{"type":"text","text":"c"}]}}"#,
        ],
        Format::Pi,
    );
    let parts: Vec<_> = (0..5).map(|number| part(&given, number)).collect();
    assert_eq!(
        parts,
        [
            "None, turn: Some(\"t1\"), sealed: false",
            "Calls([\"1\"]), turn: Some(\"t1\"), sealed: false",
            "Interim(\"1\"), turn: None, sealed: false",
            "Answers(\"1\"), turn: None, sealed: false",
            "None, turn: None, sealed: false",
        ]
    );
}

#[test]
fn signed_calls_of_gemini_are_sealed() {
    let given = read(
        &[
            r#"{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f","args":{}},"thoughtSignature":"s"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]}]}"#,
        ],
        Format::Gemini,
    );
    assert_eq!(part(&given, 0), "Calls([\"c1\"]), turn: None, sealed: true");
    assert_eq!(part(&given, 1), "Calls([\"c2\"]), turn: None, sealed: false");
}

#[test]
fn a_result_of_no_call_takes_none() {
    let given = read(
        &[
            r#"{"type":"response_item","payload":{"type":"function_call","name":"f","arguments":"{}","call_id":"a"}}"#,
            r#"{"type":"response_item","payload":{"type":"function_call_output","name":"other","output":"1"}}"#,
            r#"{"type":"response_item","payload":{"type":"function_call_output","output":"2"}}"#,
            r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"a","output":"3"}}"#,
        ],
        Format::Codex,
    );
    let results: Vec<_> =
        given.of_kind(Result).map(|entry| (&*entry.text, entry.answers.as_deref().unwrap(), entry.orphan)).collect();
    assert_eq!(results, [("1", "c1", true), ("2", "c2", true), ("3", "a", false)]);
}

#[test]
fn numbers_of_entries_begin_anew() {
    let exchange = |text: &str| {
        format!(
            r#"{{"messages":[{{"role":"user","content":"{text}"}},{{"role":"assistant","content":[{{"type":"text","text":"a"}},{{"type":"text","text":"b"}}]}}]}}"#
        )
    };
    let given = read(&[&exchange("one"), &exchange("two")], Format::Anthropic);
    assert_eq!(part(&given, 1), part(&given, 4));
}
