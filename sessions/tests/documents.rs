//! The documents of agents and benchmarks, and aider's Markdown: over the corpus, and by hand.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test may panic"
)]

mod support;

use std::{
    cell::Cell,
    collections::BTreeMap,
    convert::Infallible,
    io::{BufReader, Read},
};

use keepspan::{ContextState, Episode, Spans, Window, store::MemoryStore};
use keepspan_sessions::{CompactionKind, EntryKind, Format, ReadError, RepairKind, Step, read};
use serde_json::json;
use support::{Given, corpus, corpus_file, give};

/// Every file, with human, model, thinking, calls and results as the corpus counts them, or as it should have.
const FILES: &[(&str, Format, [u64; 5])] = &[
    // Two of the humans are pictures, as in the corpus' count of 4 they are not.
    ("goose/real-export.json", Format::Goose, [6, 5, 0, 2, 2]),
    // The corpus counts a file that the person attached as a sixth human; here it is a notice.
    ("cline/session.messages.json", Format::Cline, [5, 14, 0, 11, 11]),
    // The summary is a compaction and no human.
    ("cline/agentic.compaction.json", Format::Cline, [1, 1, 0, 0, 0]),
    ("cline/basic.compaction.json", Format::Cline, [5, 5, 0, 0, 0]),
    // The corpus lets the task answer the demonstration's last call, and counts the harness' own last turn as a call.
    ("swe-agent/requests-1921-claude35.traj", Format::SweAgent, [1, 96, 0, 96, 95]),
    ("swe-agent/marshmallow-1867-fncall-source.traj", Format::SweAgent, [1, 13, 0, 13, 13]),
    ("mini-swe-agent/github_issue.traj.json", Format::MiniSweAgent, [1, 10, 0, 10, 10]),
    ("tau-bench/airline-gpt4o-writes.json", Format::TauBench, [78, 79, 0, 141, 141]),
    ("tau2-bench/airline-gptoss-duplicate-writes.json", Format::Tau2, [20, 20, 0, 327, 327]),
    // The corpus counts the 73 calls of the user, which the agent never sees.
    ("tau2-bench/telecom-gpt41.json", Format::Tau2, [59, 59, 0, 25, 25]),
    ("tau2-bench/airline-toolorchestra-gpt5.json", Format::Tau2, [26, 26, 0, 147, 147]),
    // The corpus takes results that do not begin with `OBSERVATION:` for humans.
    ("react-text/swe-smith.json", Format::SweSmith, [2, 56, 0, 56, 54]),
    ("nebius/swe-agent.json", Format::Nebius, [3, 25, 0, 25, 22]),
    ("openhands/llm-log-fncall.json", Format::OpenHands, [1, 5, 0, 6, 5]),
    // The corpus does not pair the calls in the text.
    ("openhands/llm-log-nonfncall-deepseek.json", Format::OpenHands, [1, 3, 0, 4, 3]),
    ("inspect/browser.json", Format::Inspect, [1, 1, 0, 4, 4]),
    // One of the humans is a picture.
    ("inspect/log-images-tool-calls.json", Format::Inspect, [2, 1, 0, 0, 0]),
    // The corpus counts what aider says as results, also where it answers no edit, and joins the model's turns around it.
    ("aider/2024-08-06-two-sessions.md", Format::Aider, [42, 24, 0, 22, 19]),
];

#[test]
fn every_file_has_its_counts() {
    for (name, format, counts) in FILES {
        let Some(given) = corpus_file(name, *format) else { return };
        assert_eq!(given.counts(), *counts, "{name}");
        let open: BTreeMap<_, _> = [
            ("swe-agent/requests-1921-claude35.traj", 1),
            ("react-text/swe-smith.json", 2),
            ("nebius/swe-agent.json", 3),
            ("openhands/llm-log-fncall.json", 1),
            ("openhands/llm-log-nonfncall-deepseek.json", 1),
            ("aider/2024-08-06-two-sessions.md", 3),
        ]
        .into();
        assert_eq!(given.repairs("unanswered-call"), open.get(name).copied().unwrap_or_default(), "{name}");
        assert_eq!(given.report.calls, given.report.results + given.repairs("unanswered-call"), "{name}");
        for kind in ["orphan-result", "no-id", "unknown-record", "no-picture", "no-text", "junk"] {
            assert_eq!(given.repairs(kind), 0, "{name}: {kind}");
        }
        let bytes = std::fs::read(corpus().expect("it was there").join(name)).expect(name);
        assert_eq!(given.report.bytes, bytes.len() as u64, "{name}");
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count() + usize::from(!bytes.ends_with(b"\n"));
        assert_eq!(given.report.lines, lines as u64, "{name}");
    }
}

#[derive(ContextState)]
struct Everything {
    #[evictable(otherwise)]
    all: Spans,
}

#[test]
fn every_entry_enters_a_window() {
    for (name, format, _) in FILES {
        let Some(given) = corpus_file(name, *format) else { return };
        for number in 1..=given.conversations.len() {
            let mut window = Window::<Everything, _>::open(MemoryStore::default(), Episode::new("e", "p")).unwrap();
            let entries = given.entries.iter().filter(|(conversation, _)| *conversation == number);
            for (_, entry) in entries {
                let entered = window.lanes().all.push(entry.span.clone());
                assert!(entered.is_ok(), "{name}, line {}: {entered:?}", entry.place.line);
            }
            assert!(!window.render().is_empty() && window.orphans().is_empty(), "{name}");
        }
    }
}

/// The place of an entry is where its record begins: its bytes are there.
#[test]
fn places_are_those_of_the_records() {
    for (name, format, _) in FILES {
        let Some(given) = corpus_file(name, *format) else { return };
        let bytes = std::fs::read(corpus().expect("it was there").join(name)).expect(name);
        let ends: Vec<_> = (0..bytes.len()).filter(|at| bytes[*at] == b'\n').collect();
        for (_, entry) in &given.entries {
            let at = entry.place.offset as usize;
            assert_eq!(entry.place.line, ends.partition_point(|end| *end < at) as u64 + 1, "{name}");
            let begins = if *format == Format::Aider { at == 0 || bytes[at - 1] == b'\n' } else { bytes[at] != b' ' };
            assert!(begins, "{name}, byte {at}");
        }
    }
}

fn calls(given: &Given) -> Vec<(&str, &str)> {
    let calls = given.entries.iter().flat_map(|(_, entry)| &entry.calls);
    calls.map(|call| (&*call.name, &*call.arguments)).collect()
}

fn texts(given: &Given) -> Vec<&str> {
    given.entries.iter().map(|(_, entry)| &*entry.text).collect()
}

fn kinds(given: &Given) -> Vec<EntryKind> {
    given.entries.iter().map(|(_, entry)| entry.kind).collect()
}

#[test]
fn tau_bench_failures_reused_ids_and_empty_results() {
    let Some(given) = corpus_file("tau-bench/airline-gpt4o-writes.json", Format::TauBench) else { return };
    assert_eq!(given.of_kind(EntryKind::Result).filter(|entry| entry.failed).count(), 27);
    assert_eq!((given.repairs("duplicate-id"), given.repairs("empty-result")), (20, 20));
    let names: Vec<_> = given.conversations.iter().map(|conversation| &*conversation.name).collect();
    assert_eq!(names, ["0", "9", "13", "2", "3", "46", "8", "4"]);
    // An empty result of `think` is its record, not a text of our own.
    let thought = given.of_kind(EntryKind::Result).find(|entry| entry.tool.as_deref() == Some("think"));
    let record: serde_json::Value = serde_json::from_str(&thought.expect("it thinks").text).expect("a record");
    assert_eq!((&record["role"], &record["content"]), (&json!("tool"), &json!("")));
    assert_eq!(given.of_kind(EntryKind::System).count(), 8);
}

#[test]
fn tau2_storm_of_one_id() {
    let Some(given) = corpus_file("tau2-bench/airline-gptoss-duplicate-writes.json", Format::Tau2) else { return };
    assert_eq!(given.repairs("duplicate-id"), 299);
    assert_eq!(given.conversations[0].name.as_ref(), "15");
    let storm = given.entries.iter().filter(|(conversation, _)| *conversation == 1).flat_map(|(_, entry)| &entry.calls);
    let mut same = BTreeMap::new();
    for call in storm.filter(|call| &*call.name == "update_reservation_flights") {
        *same.entry((&call.id, &call.arguments)).or_insert(0) += 1;
    }
    assert_eq!(same.values().max(), Some(&94));
    // Each conversation begins with the policy, which is in the file once.
    let systems: Vec<_> = given.of_kind(EntryKind::System).collect();
    assert_eq!(systems.len(), given.conversations.len());
    assert!(systems.iter().all(|entry| entry.text.starts_with("# Airline Agent Policy") && entry.place.line == 3));
}

#[test]
fn tau2_calls_of_the_user_stay_out() {
    let Some(given) = corpus_file("tau2-bench/telecom-gpt41.json", Format::Tau2) else { return };
    assert_eq!((given.left_out("call of the user"), given.left_out("result of the user")), (73, 73));
    assert!(given.entries.iter().all(|(_, entry)| !entry.text.starts_with("Status Bar:")));
    assert!(calls(&given).iter().all(|(tool, _)| *tool != "toggle_airplane_mode"));
    assert!(given.conversations[0].name.starts_with("[mms_issue]airplane_mode_on|"));
}

#[test]
fn swe_agent_demonstration_and_harness() {
    let Some(given) = corpus_file("swe-agent/requests-1921-claude35.traj", Format::SweAgent) else { return };
    let notices: Vec<_> = given.of_kind(EntryKind::Notice).map(|entry| entry.text.as_ref()).collect();
    assert!(notices[0].starts_with("We're currently solving") && notices[1] == "Exit due to cost limit");
    let open: Vec<_> = given.report.repaired.iter().map(ToString::to_string).collect();
    assert_eq!(open, ["line 759: the call `c11` of `submit` has no result: its exchange stays open"]);
    assert_eq!(given.left_out("trajectory"), 1);
    // A call is in the text once.
    let edit = given.entries.iter().map(|(_, entry)| entry).find(|entry| !entry.calls.is_empty()).expect("a call");
    assert_eq!((&*edit.calls[0].name, &*edit.calls[0].arguments), ("create", "create reproduce.py"));
    assert_eq!(edit.text.matches("create reproduce.py").count(), 1);
}

#[test]
fn swe_agent_line_ends_stay() {
    let Some(given) = corpus_file("swe-agent/marshmallow-1867-fncall-source.traj", Format::SweAgent) else { return };
    assert_eq!(given.repairs("duplicate-id"), 4);
    assert!(given.of_kind(EntryKind::Result).filter(|entry| entry.text.contains("\r\n")).count() > 5);
    assert_eq!(calls(&given)[0], ("bash", r#"{"command":"ls -F"}"#));
}

#[test]
fn mini_swe_agent_exit_codes() {
    let Some(given) = corpus_file("mini-swe-agent/github_issue.traj.json", Format::MiniSweAgent) else { return };
    let failed: Vec<_> = given.of_kind(EntryKind::Result).filter(|entry| entry.failed).collect();
    assert_eq!(failed.len(), 2);
    assert!(failed.iter().all(|entry| entry.text.starts_with("<returncode>1</returncode>")));
    assert_eq!(calls(&given)[1], ("bash", "ls -la"));
}

#[test]
fn cline_session_and_what_its_compactions_left() {
    let Some(whole) = corpus_file("cline/session.messages.json", Format::Cline) else { return };
    // The prompt stands last in the file.
    let (_, last) = whole.entries.last().expect("entries");
    assert!(last.kind == EntryKind::System && last.text.starts_with("You are Cline"));
    assert_eq!(whole.repairs("late"), 1);
    let file = whole.of_kind(EntryKind::Notice).next().expect("a file");
    assert_eq!(file.text.chars().count(), 19_223);
    let read = whole.of_kind(EntryKind::Result).find(|entry| entry.tool.as_deref() == Some("read_files"));
    assert!(read.expect("it reads").text.starts_with(r#"[{"query":"/Users/example"#));

    let Some(agentic) = corpus_file("cline/agentic.compaction.json", Format::Cline) else { return };
    let [(0, compaction)] = &*agentic.compactions else { panic!("{:?}", agentic.compactions) };
    assert_eq!(compaction.tokens_before, Some(21_919));
    let CompactionKind::Summary { text: Some(text), kept_from: None } = &compaction.kind else { panic!() };
    assert!(text.starts_with("Context summary:\n\n## Goal"));

    let Some(basic) = corpus_file("cline/basic.compaction.json", Format::Cline) else { return };
    assert_eq!(basic.compactions.len(), 1);
    let notices = basic.of_kind(EntryKind::Notice).filter(|entry| entry.text.starts_with("<SYSTEM_NOTICE>"));
    assert_eq!(notices.count(), 4);
}

#[test]
fn inspect_pictures_are_bytes() {
    let Some(given) = corpus_file("inspect/log-images-tool-calls.json", Format::Inspect) else { return };
    let pictures: Vec<_> = given.of_kind(EntryKind::Human).filter(|entry| entry.text.is_empty()).collect();
    assert_eq!(pictures.len(), 1);
    assert!(given.entries.iter().all(|(_, entry)| !entry.text.contains("base64")));
}

#[test]
fn openhands_prose_and_response() {
    let name = "openhands/llm-log-nonfncall-deepseek.json";
    let Some(given) = corpus_file(name, Format::OpenHands) else { return };
    let tools: Vec<_> = calls(&given).into_iter().map(|(tool, _)| tool).collect();
    assert_eq!(tools, ["terminal", "str_replace_editor", "terminal", "finish"]);
    assert_eq!(calls(&given)[0].1, r#"{"command":"pwd && ls -la","security_risk":"LOW"}"#);
    assert_eq!(given.left_out("raw_messages"), 1);
}

#[test]
fn aider_sessions_edits_and_ambiguities() {
    let Some(given) = corpus_file("aider/2024-08-06-two-sessions.md", Format::Aider) else { return };
    let names: Vec<_> = given.conversations.iter().map(|conversation| &*conversation.name).collect();
    assert_eq!(names, ["2024-08-06 08:47:10", "2024-08-06 08:55:14"]);
    assert_eq!(given.of_kind(EntryKind::Result).filter(|entry| entry.failed).count(), 6);
    // A model that was interrupted leaves its code block open.
    let lines = given.report.repaired.iter().filter(|repair| repair.what.name() == "ambiguous");
    assert_eq!(lines.map(|repair| repair.line).collect::<Vec<_>>(), [629, 1224, 1476, 2134]);
    // Output of several lines is one notice, a line of which begins with `>`.
    let tests = given.of_kind(EntryKind::Notice).find(|entry| entry.place.line == 466).expect("a test run");
    assert_eq!(tests.text.lines().count(), 86);
    assert!(tests.text.contains("\n>           repo = GitRepo("));
    let (_, edit) = given.entries.iter().find(|(_, entry)| !entry.calls.is_empty()).expect("an edit");
    let edits = edit.calls[0].json().expect("JSON");
    assert_eq!(edits["edits"][0]["path"], "tests/basic/test_repo.py");
    assert_eq!(given.compactions.len(), 5, "`/clear`");
}

/// One file of each format, small, with what is peculiar to it.
const SMALL: &[(Format, &str)] = &[
    (
        Format::Goose,
        r#"{"id":"g1","conversation":[
        {"role":"user","content":[{"type":"text","text":"hi"}],"metadata":{"userVisible":true,"agentVisible":true}},
        {"role":"user","content":[{"type":"text","text":"gone"}],"metadata":{"userVisible":true,"agentVisible":false}},
        {"role":"user","content":[{"type":"text","text":"recap"}],"metadata":{"userVisible":false,"agentVisible":true}},
        {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"}]},
        {"role":"assistant","content":[{"type":"toolRequest","id":"1","toolCall":{"status":"success","value":{"name":"sh","arguments":{"a":1}}}},
          {"type":"toolRequest","id":"2","toolCall":{"status":"error","error":"no such tool"}}]},
        {"role":"user","content":[{"type":"toolResponse","id":"2","toolResult":{"status":"error","error":"no"}},
          {"type":"toolResponse","id":"1","toolResult":{"status":"success","value":[{"type":"text","text":"ok"}]}}]}
        ],"other":[1,{"x":"]"}]}"#,
    ),
    (
        Format::Cline,
        r#"{"sessionId":"c1","system_prompt":"be good","messages":[{"role":"user","content":"hi"},
        {"id":"m","role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"1","name":"rm","input":{}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"query":"q","success":false}],"is_error":true}]}]}"#,
    ),
    (
        Format::SweAgent,
        r#"{"trajectory":[{"messages":[{"role":"user","content":"copy"}]}],"history":[{"role":"system","content":"s"},
        {"role":"user","content":[{"type":"text","text":"task"}]},
        {"role":"assistant","content":"","action":"submit\n"},{"role":"user","content":"done"},
        {"role":"assistant","content":"idle","action":""},{"role":"user","content":"say something"}]}"#,
    ),
    (
        Format::MiniSweAgent,
        r#"{"info":{"mini_version":"1.1"},"messages":[{"role":"user","content":"task"},
        {"role":"assistant","content":null,"reasoning_content":"hm","thinking_blocks":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"redacted_thinking","data":"x"}],"function_call":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"bash","arguments":"{\"command\":\"false\"}"}}],"extra":{"a":1}},
        {"role":"tool","tool_call_id":"1","content":"<returncode>1</returncode>\n<output>\n</output>"},
        {"role":"assistant","content":"two blocks\n```bash\na\n```\n```bash\nb\n```"},{"role":"user","content":"one action only"},
        {"role":"exit","content":"diff"}],"trajectory_format":"mini-swe-agent-1.1"}"#,
    ),
    (
        Format::TauBench,
        r#"[{"task_id":3,"traj":[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"1","function":{"name":"book","arguments":"{}"}}]},
        {"role":"tool","tool_call_id":"1","name":"book","content":"Error: no seat"},
        {"role":"tool","tool_call_id":"1","name":"book","content":"late"}]}]"#,
    ),
    (
        Format::Tau2,
        r#"{"info":{"environment_info":{"policy":"p"}},"simulations":[{"task_id":"t","messages":[{"role":"assistant","content":"hello"},
        {"role":"user","content":"look","tool_calls":[{"id":"u","name":"look","arguments":{},"requestor":"user"}]},
        {"role":"tool","id":"u","content":"dark","requestor":"user","error":false},
        {"role":"assistant","content":null,"tool_calls":[{"id":"1","name":"pay","arguments":{"a":1},"requestor":"assistant"}]},
        {"role":"tool","id":"1","content":"refused","requestor":"assistant","error":true}]}]}"#,
    ),
    (
        Format::Inspect,
        r#"{"version":2,"eval":{"eval_id":"e"},"samples":[{"id":"s","epoch":2,"messages":[{"role":"system","content":"first"},
        {"role":"user","content":"see attachment://aa1 and attachment://bb2"},
        {"role":"assistant","content":[{"type":"reasoning","reasoning":"hm"}],"tool_calls":[{"id":"1","function":"go","arguments":{"url":"attachment://aa1"}}]},
        {"role":"tool","tool_call_id":"1","function":"go","content":"","error":{"type":"timeout","message":"too late"}}],
        "events":[{"deep":["]}"]}],"attachments":{"aa1":"a \"text\"\n"}}]}"#,
    ),
    (
        Format::OpenHands,
        r#"{"messages":[{"role":"system","content":[{"type":"text","text":"s"}]},{"role":"user","content":"task"},
        {"role":"assistant","content":"on it\n<function=run>\n<parameter=command>ls</parameter>\n</function"},
        {"role":"user","content":"EXECUTION RESULT of [run]:\na"},{"role":"assistant","content":"done?"},{"role":"user","content":"yes"}],
        "context_window":1,"response":{"choices":[{"message":{"role":"assistant","content":"","tool_calls":[{"id":"z","function":{"name":"finish","arguments":"{}"}}]}}]}}"#,
    ),
    (
        Format::Nebius,
        r#"[{"instance_id":"n","trajectory":[{"role":"system","system_prompt":"s","text":null},{"role":"user","text":"task"},
        {"role":"ai","text":"look\n```\nopen a.py\n```"},{"role":"user","text":"1: x"},{"role":"ai","text":"no command"},{"role":"user","text":"one command"}]}]"#,
    ),
    (
        Format::SweSmith,
        "[{\"traj_id\":\"w\",\"messages\":[{\"role\":\"user\",\"content\":\"task\"},\n{\"role\":\"assistant\",\"content\":\"<function=bash>\\n\
         <parameter=command>ls</parameter>\\n</function>\"},\n{\"role\":\"user\",\"content\":\"OBSERVATION:\\na\\r\\nb\"}]}]",
    ),
    (
        Format::Aider,
        "# aider chat started at 2024-01-01 00:00:00\n\n> Aider v1  \n\n#### do it  \n#### now  \n\nSure:\n\na.rs\n<<<<<<< SEARCH\nx\n=======\ny\n\
         >>>>>>> REPLACE\n\n> Applied edit to a.rs  \n\n#### why?  \n\n> a quote\n#### a heading\n\n> Tokens: 1  \n",
    ),
];

fn small(format: Format) -> &'static str {
    SMALL.iter().find(|(one, _)| *one == format).expect("there is one of each").1
}

fn read_small(format: Format) -> Given {
    let text = small(format);
    assert_eq!(Format::detect(text.as_bytes(), None), Ok(format));
    give(text.as_bytes(), format).unwrap_or_else(|error| panic!("{format}: {error}"))
}

fn answers(given: &Given) -> Vec<(&str, &str, bool, bool)> {
    given
        .of_kind(EntryKind::Result)
        .map(|entry| (entry.answers.as_deref().unwrap_or("?"), &*entry.text, entry.failed, entry.orphan))
        .collect()
}

#[test]
fn goose_in_small() {
    use EntryKind::{Human, Model, Notice, Result, Thinking};
    let given = read_small(Format::Goose);
    assert_eq!(kinds(&given), [Human, Notice, Thinking, Model, Result, Result]);
    assert_eq!(calls(&given), [("sh", r#"{"a":1}"#), ("unknown", "no such tool")]);
    assert_eq!(answers(&given), [("2", "no", true, false), ("1", "ok", false, false)]);
    assert_eq!(given.left_out("not visible to the agent"), 1);
    assert_eq!(&*given.conversations[0].name, "g1");
}

#[test]
fn cline_in_small() {
    use EntryKind::{Human, Model, Result, System, Thinking};
    let given = read_small(Format::Cline);
    assert_eq!(kinds(&given), [System, Human, Thinking, Model, Result]);
    assert_eq!(answers(&given), [("1", r#"[{"query":"q","success":false}]"#, true, false)]);
    assert!(given.report.repaired.is_empty() && given.conversations.len() == 1);
}

#[test]
fn swe_agent_in_small() {
    use EntryKind::{Human, Model, Notice, Result, System};
    let given = read_small(Format::SweAgent);
    assert_eq!(kinds(&given), [System, Human, Model, Result, Model, Notice]);
    // A turn without text says its call.
    assert_eq!(texts(&given)[2], r#"{"id":"c1","name":"submit","arguments":"submit"}"#);
    assert_eq!(answers(&given), [("c1", "done", false, false)]);
}

#[test]
fn mini_swe_agent_in_small() {
    use EntryKind::{Human, Model, Notice, Result, Thinking};
    let given = read_small(Format::MiniSweAgent);
    // Signed reasoning is there once, though it is in the file twice.
    assert_eq!(kinds(&given), [Human, Thinking, Thinking, Model, Result, Model, Notice]);
    assert_eq!(answers(&given), [("1", "<returncode>1</returncode>\n<output>\n</output>", true, false)]);
    assert_eq!((given.report.calls, given.left_out("exit")), (1, 1));
}

#[test]
fn tau_bench_in_small() {
    let given = read_small(Format::TauBench);
    assert_eq!(answers(&given), [("1", "Error: no seat", true, false), ("1", "late", false, true)]);
    assert_eq!(given.report.repaired.len(), 1);
    assert_eq!(given.report.repaired[0].what, RepairKind::OrphanResult { call: "1".into() });
    assert_eq!(given.report.repaired[0].line, 3);
}

#[test]
fn tau2_in_small() {
    let given = read_small(Format::Tau2);
    assert_eq!(texts(&given)[..3], ["p", "hello", "look"]);
    assert_eq!(answers(&given), [("1", "refused", true, false)]);
    assert_eq!(calls(&given), [("pay", r#"{"a":1}"#)]);

    let late = r#"{"simulations":[{"id":"s","messages":[{"role":"user","content":"hi"}]}],"info":{"environment_info":{"policy":"p"}}}"#;
    let given = give(late.as_bytes(), Format::Tau2).unwrap();
    assert_eq!((texts(&given), given.repairs("late")), (vec!["hi"], 1));
}

#[test]
fn inspect_in_small() {
    use EntryKind::{Human, Model, Result, System, Thinking};
    let given = read_small(Format::Inspect);
    assert_eq!(kinds(&given), [System, Human, Thinking, Model, Result]);
    assert_eq!(texts(&given)[1], "see a \"text\"\n and attachment://bb2");
    assert_eq!(calls(&given), [("go", r#"{"url":"a \"text\"\n"}"#)]);
    assert_eq!(answers(&given), [("1", "too late", true, false)]);
    assert_eq!(given.report.repaired[0].what, RepairKind::NoText { what: "attachment://bb2".into() });
    assert_eq!(&*given.conversations[0].name, "s epoch 2");
    // What waited keeps its place.
    assert_eq!(given.entries.iter().map(|(_, entry)| entry.place.line).collect::<Vec<_>>(), [1, 2, 3, 3, 4]);

    let first =
        small(Format::Inspect).replace("\"epoch\":2", "\"epoch\":1,\"attachments\":{\"aa1\":\"A\",\"bb2\":\"B\"}");
    let given = give(first.as_bytes(), Format::Inspect).unwrap();
    assert_eq!((texts(&given)[1], given.report.repaired.len()), ("see a \"text\"\n and B", 0));
    assert_eq!(&*given.conversations[0].name, "s");
}

#[test]
fn openhands_log_in_small() {
    use EntryKind::{Human, Model, Result, System};
    let given = read_small(Format::OpenHands);
    assert_eq!(kinds(&given), [System, Human, Model, Result, Model, Human, Model]);
    assert_eq!(calls(&given), [("run", r#"{"command":"ls"}"#), ("finish", "{}")]);
    assert_eq!(given.repairs("unanswered-call"), 1);
}

#[test]
fn nebius_in_small() {
    use EntryKind::{Human, Model, Notice, Result, System};
    let given = read_small(Format::Nebius);
    assert_eq!(kinds(&given), [System, Human, Model, Result, Model, Notice]);
    assert_eq!(calls(&given), [("open", "open a.py")]);
}

#[test]
fn swe_smith_in_small() {
    let given = read_small(Format::SweSmith);
    assert_eq!(answers(&given), [("c1", "OBSERVATION:\na\r\nb", false, false)]);
    assert_eq!(&*given.conversations[0].name, "w");
}

#[test]
fn aider_in_small() {
    use EntryKind::{Human, Model, Notice, Result};
    let given = read_small(Format::Aider);
    assert_eq!(kinds(&given), [Notice, Human, Model, Result, Human, Model, Notice]);
    assert_eq!(texts(&given)[1], "do it\nnow");
    assert_eq!(texts(&given)[5], "> a quote\n#### a heading");
    assert_eq!(calls(&given), [("edit", r#"{"edits":[{"path":"a.rs","replace":"y","search":"x"}]}"#)]);
    assert_eq!(given.report.repaired.iter().map(|repair| repair.line).collect::<Vec<_>>(), [21, 22]);
    // Of a file whose lines lost their final spaces, every mark counts.
    let stripped = small(Format::Aider).replace("  \n", "\n").replace("\n> a quote\n#### a heading\n", "\ntext\n");
    assert_eq!(kinds(&give(stripped.as_bytes(), Format::Aider).unwrap()), kinds(&given));
    // A line that is no UTF-8 is skipped.
    let mut broken = small(Format::Aider).as_bytes().to_vec();
    broken.extend(b"\xff\n");
    assert_eq!(give(&broken, Format::Aider).unwrap().repairs("junk"), 1);
}

#[test]
fn documents_follow_each_other() {
    for (format, text) in SMALL.iter().filter(|(format, _)| *format != Format::Aider) {
        let once = give(text.as_bytes(), *format).unwrap();
        let twice = give(format!("{text}\n\n{text} ").as_bytes(), *format).unwrap();
        assert_eq!(twice.report.entries, once.report.entries * 2, "{format}");
        assert_eq!(twice.conversations.len(), once.conversations.len() * 2, "{format}");
    }
}

#[test]
fn what_a_record_lacks_is_an_error_with_its_line() {
    for (format, from, to, line, says) in [
        (Format::Goose, r#""toolCall":{"status":"error","error":"no such tool"}"#, r#""x":1"#, 6, "`toolCall`"),
        (Format::Goose, r#","error":"no such tool""#, "", 6, "neither `value` nor `error`"),
        (Format::Goose, r#""id":"2","toolResult""#, r#""toolResult""#, 8, "without `id`"),
        (Format::Goose, r#""toolResult":{"status":"error","error":"no"}"#, r#""x":1"#, 8, "without `toolResult`"),
        (Format::Cline, r#""name":"rm","#, "", 2, "a `tool_use` without `name`"),
        (Format::Cline, r#""tool_use_id":"1","#, "", 3, "missing field `tool_use_id`"),
        (Format::SweAgent, r#""role":"user","content":"done""#, r#""content":"done""#, 3, "missing field `role`"),
        (Format::MiniSweAgent, r#""name":"bash","#, "", 2, "missing field `name`"),
        (Format::TauBench, r#""function":{"name":"book","arguments":"{}"}"#, r#""x":1"#, 1, "a call without a name"),
        (Format::Tau2, r#""policy":"p""#, r#""policy":["p"]"#, 1, "the `info` of tau2 results"),
        (Format::Tau2, r#""messages":["#, r#""messages":{},"x":["#, 1, "a list is expected"),
        (Format::Inspect, r#""role":"system""#, r#""role":5"#, 1, "an Inspect message"),
        (Format::OpenHands, r#""choices":[{"#, r#""choices":[],"x":[{"#, 4, "a response without choices"),
        (Format::Nebius, r#""text":"1: x""#, r#""text":null"#, 2, "a message of `user` without text"),
        (Format::SweSmith, r#""content":"task""#, r#""content":5"#, 1, "a SWE-smith message"),
    ] {
        let text = small(format).replacen(from, to, 1);
        assert_ne!(text, small(format), "{format}: {from}");
        match give(text.as_bytes(), format) {
            Err(ReadError::Record { line: at, what, .. }) => {
                assert!(at == line && what.contains(says), "{format}, line {at}: {what}");
            }
            other => panic!("{format}: {says}: {other:?}"),
        }
    }
}

#[test]
fn what_is_unknown_is_skipped_and_told() {
    for (format, from, to, kind) in [
        (Format::Goose, r#""type":"text","text":"hi""#, r#""type":"dance""#, "block dance"),
        (Format::Goose, r#""role":"assistant""#, r#""role":"narrator""#, "message narrator"),
        (
            Format::Cline,
            r#""role":"user","content":"hi""#,
            r#""role":"user","content":[{"type":"dance"}]"#,
            "block dance",
        ),
        (Format::TauBench, r#""role":"user""#, r#""role":"narrator""#, "role narrator"),
        (Format::Nebius, r#""role":"ai","text":"no"#, r#""role":"narrator","text":"no"#, "message narrator"),
    ] {
        let given = give(small(format).replacen(from, to, 1).as_bytes(), format).unwrap();
        let unknown = RepairKind::UnknownRecord { kind: kind.into(), count: 1 };
        assert!(given.report.repaired.iter().any(|repair| repair.what == unknown), "{format}: {:?}", given.report);
    }
}

#[test]
fn a_document_that_is_cut_off_is_an_error() {
    for (format, text) in SMALL.iter().filter(|(format, _)| *format != Format::Aider) {
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            match give(&text.as_bytes()[..end], *format) {
                Err(ReadError::CutOff { .. }) => {}
                // What tells a log of OpenHands from its events comes late.
                Err(ReadError::Nothing { .. }) if end == 0 || *format == Format::OpenHands => {}
                other => panic!("{format} cut at {end}: {other:?}"),
            }
        }
    }
}

/// Counts what was taken from it.
struct Counted<'a> {
    bytes: &'a [u8],
    taken: &'a Cell<u64>,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.bytes.read(buffer)?;
        self.taken.set(self.taken.get() + read as u64);
        Ok(read)
    }
}

/// A document of any size needs the memory of one of its messages.
#[test]
fn messages_are_given_as_they_are_read() {
    let messages = vec![r#"{"role":"user","content":"hello there"}"#; 20_000].join(",\n");
    let skipped = format!("[{}]", vec!["[\"]\"]"; 100_000].join(","));
    for (format, text) in [
        (Format::TauBench, format!("[{{\"info\":{skipped},\"traj\":[{messages}]}}]")),
        (Format::SweAgent, format!("{{\"trajectory\":{skipped},\"history\":[{messages}]}}")),
        (Format::Inspect, format!("{{\"samples\":[{{\"events\":{skipped},\"messages\":[{messages}]}}]}}")),
    ] {
        let taken = Cell::new(0);
        let input = BufReader::with_capacity(8 << 10, Counted { bytes: text.as_bytes(), taken: &taken });
        let report = read(input, format, |step| {
            if let Step::Entry(entry) = step {
                let ahead = taken.get() - entry.place.offset;
                assert!(ahead <= 16 << 10, "{format}: {ahead} bytes read before the entry was given");
            }
            Ok::<_, Infallible>(())
        });
        assert_eq!(report.unwrap().entries, 20_000, "{format}");
    }
}

/// Whatever is done to a file, reading it ends, with steps or an error.
#[test]
fn damage_is_no_panic() {
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut below = |limit: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % limit.max(1) as u64) as usize
    };
    let mut files: Vec<_> = SMALL.iter().map(|(format, text)| (*format, text.as_bytes().to_vec())).collect();
    if let Some(folder) = corpus() {
        files.extend(FILES.iter().map(|(name, format, _)| (*format, std::fs::read(folder.join(name)).expect(name))));
    }
    for (format, bytes) in files {
        let rounds = (100_000 / bytes.len()).clamp(2, 100);
        for round in 0..rounds {
            let mut damaged = bytes.clone();
            if round % 2 == 0 {
                damaged.truncate(below(bytes.len()));
            }
            for _ in 0..below(8) {
                let (at, byte) = (below(damaged.len()), below(256) as u8);
                if let Some(place) = damaged.get_mut(at) {
                    *place = byte;
                }
            }
            for format in [format, Format::ALL[below(Format::ALL.len())]] {
                let mut steps = 0_u64;
                let read = read(&*damaged, format, |_| {
                    steps += 1;
                    Ok::<_, Infallible>(())
                });
                assert!(read.is_err() || steps > 0, "{format}: {read:?}");
            }
        }
    }
}
