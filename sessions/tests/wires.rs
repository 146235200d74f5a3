//! The wire formats, over the corpus. Counts are human, model, thinking, calls, results.

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
use support::corpus_file;

#[test]
fn chat_cassettes() {
    let Some(given) = corpus_file("openai-chat/cassettes.json", Format::Chat) else { return };
    assert_eq!(given.counts(), [2, 3, 3, 7, 7]);
    let names: Vec<_> = given.conversations.iter().map(|conversation| &*conversation.name).collect();
    assert_eq!(names, ["test_complex_agent_run_in_flow.yaml", "test_deepseek_deferred_capability_with_thinking.yaml"]);
    // Streamed responses are in the next request; the last one is lost with its stream.
    assert_eq!((given.repairs("unknown-record"), given.left_out("repeated message")), (1, 16));
}

#[test]
fn chat_records_with_messages() {
    let Some(given) = corpus_file("openai-chat/swe-gym-openhands.json", Format::Chat) else { return };
    assert_eq!(given.counts(), [7, 29, 0, 67, 64]);
    assert_eq!((given.conversations.len(), given.repairs("unanswered-call")), (3, 3));
    assert!(given.entries.iter().any(|(_, entry)| entry.text.contains("\r\n")));
}

#[test]
fn chat_training_lines() {
    let Some(given) = corpus_file("openai-chat/tau2-sft-train.jsonl", Format::Chat) else { return };
    assert_eq!(given.counts(), [59, 68, 0, 55, 55]);
    assert_eq!(given.report.repair_count(), 0);
    assert_eq!(given.conversations.len() as u64, given.report.lines);
}

#[test]
fn responses_cassettes() {
    let Some(given) = corpus_file("openai-responses/cassettes.json", Format::Responses) else { return };
    // The corpus has two people and two answers less, which a compaction took out of the last request, and three results less:
    // those of the calls that the provider ran.
    assert_eq!(given.counts(), [12, 12, 8, 7, 7]);
    assert_eq!(given.conversations.len(), 5);
    let kinds: Vec<_> = given.compactions.iter().map(|(_, compaction)| &compaction.kind).collect();
    assert_eq!(*kinds[0], CompactionKind::Summary { text: None, kept_from: None });
    let CompactionKind::Replaced { texts, .. } = kinds[1] else { panic!("{kinds:?}") };
    assert_eq!(texts.iter().map(|text| &**text).collect::<Vec<_>>(), ["What is 2+2?", "And 3+3?"]);
    assert_eq!(kinds.len(), 2);
    // The provider's own searches say no result.
    assert_eq!(given.repairs("empty-result"), 2);
    assert_eq!([given.repairs("unanswered-call"), given.repairs("orphan-result")], [0, 0]);
}

#[test]
fn anthropic_cassettes() {
    let Some(given) = corpus_file("anthropic-messages/cassettes.json", Format::Anthropic) else { return };
    assert_eq!(given.counts(), [10, 45, 5, 9, 9]);
    assert_eq!((given.conversations.len(), given.report.repair_count()), (6, 0));
    let CompactionKind::Summary { text: Some(text), .. } = &given.compactions[0].1.kind else { panic!() };
    assert!(text.starts_with("The user provided a very long context"));
    // Parallel calls in one turn, their results behind it.
    let turn = given.entries.iter().position(|(_, entry)| entry.calls.len() == 4).unwrap();
    let answered = given.entries[turn + 1..][..4].iter().map(|(_, entry)| entry.answers.clone().unwrap());
    assert!(answered.eq(given.entries[turn].1.calls.iter().map(|call| call.id.clone())));
}

#[test]
fn gemini_cassettes() {
    let Some(given) = corpus_file("gemini-api/cassettes.json", Format::Gemini) else { return };
    // The corpus counts the empty text of a request that has instructions only.
    assert_eq!(given.counts(), [4, 4, 2, 7, 6]);
    // The client invented ids for the results of calls that had none; they were paired by name and order.
    assert_eq!([given.repairs("no-id"), given.repairs("unanswered-call"), given.repairs("orphan-result")], [7, 1, 0]);
    let results: Vec<_> = given.of_kind(EntryKind::Result).map(|entry| entry.answers.clone().unwrap()).collect();
    assert_eq!(results.iter().map(|id| &**id).collect::<Vec<_>>(), ["c1", "c2", "c3", "c4", "c5", "c6"]);
}
