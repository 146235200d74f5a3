//! The formats of one record a line, over the corpus.

mod support;

use keepspan_sessions::Format;
use support::corpus_file;

#[test]
fn pi_large_session() {
    let Some(given) = corpus_file("pi/large-session.jsonl", Format::Pi) else { return };
    assert_eq!(given.counts(), [88, 244, 1, 391, 373]);
    assert_eq!(given.repairs("unanswered-call"), 18);
    assert_eq!(given.left_out("thinking_level_change"), 103);
    eprintln!("{:#?}", given.report);
}

#[test]
fn look() {
    for (name, format) in [
        ("claude-code/multi-session-feature.jsonl", Format::ClaudeCode),
        ("claude-code/agent-name-logging.jsonl", Format::ClaudeCode),
        ("claude-code/token-usage-debug.jsonl", Format::ClaudeCode),
        ("claude-code/schema-coverage-small.jsonl", Format::ClaudeCode),
        ("codex/schema-coverage-0.146.jsonl", Format::Codex),
        ("codex/rearview-rollout.jsonl", Format::Codex),
        ("kimi-cli/assistant-tools-compaction.jsonl", Format::Kimi),
        ("gemini-cli/color-file.json", Format::GeminiCli),
        ("gemini-cli/jsonl-v040.jsonl", Format::GeminiCli),
    ] {
        let Some(given) = corpus_file(name, format) else { return };
        eprintln!("{name} {:?} {:?} {:?}", given.counts(), given.report.repairs, given.report.left_out);
        eprintln!("{:?}", given.compactions);
        for repair in given.report.repaired.iter().take(40) {
            eprintln!("   {repair}");
        }
    }
}
