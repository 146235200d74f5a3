//! The formats of one record a line, over the corpus. Counts are human, model, thinking, calls, results.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test may panic"
)]

mod support;

use std::sync::Arc;

use keepspan_sessions::{CompactionKind, EntryKind, Format, RepairKind};
use support::{Given, corpus_file};

/// The repairs of a kind, by line.
fn lines(given: &Given, name: &str) -> Vec<u64> {
    let of_kind = given.report.repaired.iter().filter(|repair| repair.what.name() == name);
    of_kind.map(|repair| repair.line).collect()
}

#[test]
fn pi_large_session() {
    let Some(given) = corpus_file("pi/large-session.jsonl", Format::Pi) else { return };
    assert_eq!(given.counts(), [88, 244, 1, 391, 373]);
    assert_eq!(&*given.conversations[0].name, "d703a1a9-1b7b-4fb1-b512-c9738b1fe617");
    assert_eq!(given.repairs("unanswered-call"), 18);
    assert_eq!(given.report.repair_count(), 18);
    assert_eq!(lines(&given, "unanswered-call")[..3], [33, 33, 33]);
    assert_eq!([given.left_out("thinking_level_change"), given.left_out("model_change")], [103, 1]);
    let failed = given.of_kind(EntryKind::Result).filter(|entry| entry.failed).count();
    assert_eq!(failed, 19);
    // The identifier that a write needs 49k tokens after it was read.
    let read = given.entries.iter().position(|(_, entry)| entry.text.contains("ColorValueSchema")).unwrap();
    let written = given.entries.iter().rposition(|(_, entry)| {
        entry.calls.iter().any(|call| &*call.name == "edit" && call.arguments.contains("ColorValueSchema"))
    });
    assert!(written.unwrap() > read + 200);
}

#[test]
fn a_turn_shares_its_text_with_its_span() {
    let Some(given) = corpus_file("pi/large-session.jsonl", Format::Pi) else { return };
    let (_, entry) = given.entries.iter().find(|(_, entry)| entry.calls.len() == 3).unwrap();
    assert!(Arc::strong_count(&entry.text) > 1);
    let lines: Vec<_> = entry.text.lines().collect();
    assert_eq!(lines.len(), 4);
    assert!(lines[0].starts_with("I'll read the theme documentation"));
    for (line, call) in lines[1..].iter().zip(&entry.calls) {
        let json: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(json["id"], *call.id);
        assert_eq!(json["name"], *call.name);
        assert_eq!(Some(&json["arguments"]), call.json().as_ref());
    }
}

#[test]
fn claude_code_compacts() {
    let Some(given) = corpus_file("claude-code/multi-session-feature.jsonl", Format::ClaudeCode) else { return };
    assert_eq!(given.counts(), [7, 46, 93, 86, 86]);
    let [(before, compaction)] = &given.compactions[..] else { panic!("{:?}", given.compactions) };
    assert_eq!((*before, compaction.tokens_before), (134, Some(155_179)));
    let CompactionKind::Summary { text: Some(text), kept_from: None } = &compaction.kind else { panic!() };
    assert!(text.starts_with("This session is being continued from a previous conversation"));
    assert_eq!(lines(&given, "no-final-newline"), [339]);
    assert_eq!(lines(&given, "empty-result"), [166]);
    assert_eq!(given.report.repair_count(), 2);
}

#[test]
fn claude_code_two_writers() {
    let Some(given) = corpus_file("claude-code/agent-name-logging.jsonl", Format::ClaudeCode) else { return };
    // The corpus counts the text of the interruption as a person's; the program wrote it.
    assert_eq!(given.counts(), [5, 21, 42, 41, 41]);
    let notices: Vec<_> = given.of_kind(EntryKind::Notice).collect();
    assert_eq!(notices.len(), 1);
    assert_eq!((&*notices[0].text, notices[0].place.line), ("[Request interrupted by user for tool use]", 161));
    let shared = given.report.repaired.iter().find(|repair| repair.line == 128).unwrap();
    assert_eq!(shared.what, RepairKind::SharedLine { records: 2 });
    assert_eq!(shared.to_string(), "line 128: 2 records on one line: all read");
}

#[test]
fn claude_code_clears_results() {
    let Some(given) = corpus_file("claude-code/token-usage-debug.jsonl", Format::ClaudeCode) else { return };
    assert_eq!(given.counts(), [4, 48, 57, 55, 55]);
    let [(before, compaction)] = &given.compactions[..] else { panic!("{:?}", given.compactions) };
    assert_eq!((compaction.tokens_before, compaction.tokens_saved), (Some(58_573), Some(20_801)));
    let CompactionKind::Cleared { calls } = &compaction.kind else { panic!() };
    assert_eq!(calls.len(), 11);
    let cleared = calls.iter().map(|call| {
        let mut results = given.entries[..*before].iter().filter(|(_, entry)| entry.answers.as_ref() == Some(call));
        results.next().unwrap_or_else(|| panic!("{call}")).1.text.chars().count()
    });
    assert_eq!(cleared.sum::<usize>(), 83_187);
    // The text of a skill, which no person typed.
    let notice = given.of_kind(EntryKind::Notice).next().unwrap();
    assert!(notice.text.starts_with("Base directory for this skill:"));
    assert!(given.of_kind(EntryKind::Thinking).all(|entry| !entry.text.is_empty()));
}

#[test]
fn claude_code_one_record_of_each_kind() {
    let Some(given) = corpus_file("claude-code/schema-coverage-small.jsonl", Format::ClaudeCode) else { return };
    // The corpus counts the message that the program wrote in the model's place as the model's, and no picture as a person's.
    assert_eq!(given.counts(), [7, 5, 6, 3, 3]);
    // The second has no summary, and stands where its boundary does.
    let at: Vec<_> = given.compactions.iter().map(|(before, compaction)| (*before, compaction.place.line)).collect();
    assert_eq!(at, [(7, 21), (13, 51)]);
    assert!(given.entries.len() > 13);
    assert_eq!([given.repairs("no-id"), given.repairs("unanswered-call"), given.repairs("no-picture")], [2, 1, 1]);
    assert_eq!(given.left_out("attachment"), 38);
    let unknown: Vec<_> =
        given.report.repaired.iter().filter(|repair| repair.what.name() == "unknown-record").collect();
    assert_eq!(
        unknown[0].to_string(),
        "line 50: skipped: 1 of the unknown kind `block fallback`, the first of them here"
    );
    assert_eq!(unknown.len(), 1);
}

#[test]
fn codex_every_record() {
    let Some(given) = corpus_file("codex/schema-coverage-0.146.jsonl", Format::Codex) else { return };
    // The corpus has one user less, who gave a picture without bytes beside the text, and two results less: those of the calls
    // that the provider ran, and of the tool search.
    assert_eq!(given.counts(), [2, 1, 2, 8, 8]);
    assert_eq!(given.compactions.len(), 6);
    assert_eq!([given.repairs("duplicate-id"), given.repairs("unanswered-call")], [3, 1]);
    assert_eq!(given.left_out("event_msg"), 68);
    assert!(given.of_kind(EntryKind::Thinking).next().is_some());
}

#[test]
fn codex_edge_cases() {
    let Some(given) = corpus_file("codex/rearview-rollout.jsonl", Format::Codex) else { return };
    // The corpus counts messages of role user: three of the five, and two of the four texts of the first, are the program's.
    assert_eq!(given.counts(), [2, 2, 1, 2, 3]);
    let human: Vec<_> = given.of_kind(EntryKind::Human).map(|entry| &*entry.text).collect();
    assert_eq!(human, ["active codex question", "follow-up question"]);
    assert!(given.of_kind(EntryKind::Notice).any(|entry| entry.text.contains("<user_shell_command>")));
    assert_eq!(lines(&given, "junk"), [17]);
    let orphan = given.entries.iter().find(|(_, entry)| entry.orphan).unwrap();
    assert_eq!(
        (&*orphan.1.text, orphan.1.tool.as_deref()),
        ("delegated task searchable", Some("send_message_to_thread"))
    );
    let CompactionKind::Replaced { texts, summary } = &given.compactions[0].1.kind else { panic!() };
    assert_eq!((&*texts[0], summary.as_deref()), ("REPLACEMENT_SENTINEL", Some("compaction summary text")));
    for text in ["EVENT_DUPLICATE_SENTINEL", "WORLD_STATE_SENTINEL", "ENCRYPTED_SENTINEL"] {
        assert!(given.entries.iter().all(|(_, entry)| &*entry.text != text), "{text}");
    }
    let systems: Vec<_> = given.of_kind(EntryKind::System).map(|entry| &*entry.text).collect();
    assert_eq!(systems, ["BASE_INSTRUCTIONS_SENTINEL", "DEVELOPER_SENTINEL"]);
}

#[test]
fn kimi() {
    let Some(given) = corpus_file("kimi-cli/assistant-tools-compaction.jsonl", Format::Kimi) else { return };
    // The corpus counts five texts of role user more, which the program wrote.
    assert_eq!(given.counts(), [8, 6, 22, 19, 19]);
    assert_eq!(given.of_kind(EntryKind::Notice).count(), 5);
    assert_eq!(given.report.repair_count(), 0);
    let [(_, compaction)] = &given.compactions[..] else { panic!("{:?}", given.compactions) };
    assert_eq!((compaction.tokens_before, compaction.tokens_saved), (Some(15_912), Some(15_258)));
    assert_eq!(&*given.of_kind(EntryKind::Result).next().unwrap().answers.clone().unwrap(), "Bash_0");
}

#[test]
fn gemini_cli_document() {
    let Some(given) = corpus_file("gemini-cli/color-file.json", Format::GeminiCli) else { return };
    assert_eq!(given.counts(), [1, 10, 15, 9, 9]);
    assert_eq!(given.report.repair_count(), 0);
    assert_eq!(given.left_out("info"), 1);
    // A result stands behind its call, and before the next text.
    let kinds: Vec<_> = given.entries[..6].iter().map(|(_, entry)| entry.kind).collect();
    use EntryKind::{Human, Model, Result, Thinking};
    assert_eq!(kinds, [Human, Thinking, Thinking, Model, Result, Thinking]);
}

#[test]
fn gemini_cli_lines() {
    let Some(given) = corpus_file("gemini-cli/jsonl-v040.jsonl", Format::GeminiCli) else { return };
    assert_eq!(given.counts(), [1, 1, 0, 1, 1]);
    assert_eq!(&*given.conversations[0].name, "gemini_stage0_jsonl");
    assert_eq!(given.left_out("$set"), 1);
}
