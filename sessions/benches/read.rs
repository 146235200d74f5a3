//! Bytes of a file a second: read as steps, and skipped by `serde_json` as they are. Both over the files of `KEEPSPAN_CORPUS`,
//! repeated to 16 MB where the format allows it, since a file of some kilobytes measures its conversation's first call.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "a bench may panic")]

use std::{convert::Infallible, hint::black_box, path::Path};

use divan::{Bencher, counter::BytesCount};
use keepspan_sessions::{Format, read};
use serde::de::IgnoredAny;

const FILES: &[&str] = &[
    "claude-code/multi-session-feature.jsonl",
    "pi/large-session.jsonl",
    "codex/schema-coverage-0.146.jsonl",
    "kimi-cli/assistant-tools-compaction.jsonl",
    "gemini-cli/color-file.json",
    "goose/real-export.json",
    "cline/session.messages.json",
    "openhands/llm-log-nonfncall-deepseek.json",
    "swe-agent/requests-1921-claude35.traj",
    "mini-swe-agent/github_issue.traj.json",
    "tau-bench/airline-gpt4o-writes.json",
    "tau2-bench/airline-gptoss-duplicate-writes.json",
    "inspect/browser.json",
    "nebius/swe-agent.json",
    "react-text/swe-smith.json",
    "aider/2024-08-06-two-sessions.md",
    "openai-chat/tau2-sft-train.jsonl",
    "openai-responses/cassettes.json",
    "anthropic-messages/cassettes.json",
    "gemini-api/cassettes.json",
    "openhands/llm-log-fncall.json",
    "swe-agent/marshmallow-1867-fncall-source.traj",
];

fn main() {
    if std::env::var_os("KEEPSPAN_CORPUS").is_none() {
        eprintln!("skipped: KEEPSPAN_CORPUS is not set");
        return;
    }
    divan::main();
}

/// The file, lines of JSON repeated to 16 MB.
fn bytes(name: &str) -> Vec<u8> {
    let folder = std::env::var_os("KEEPSPAN_CORPUS").unwrap_or_default();
    let mut bytes = std::fs::read(Path::new(&folder).join(name)).expect(name);
    if name.ends_with(".jsonl") {
        bytes.push(b'\n');
        bytes = bytes.repeat((16 << 20) / bytes.len());
    }
    bytes
}

#[divan::bench(args = FILES, sample_count = 10)]
fn steps(bencher: Bencher<'_, '_>, name: &str) {
    let bytes = bytes(name);
    let format = Format::detect(&bytes[..bytes.len().min(64 << 10)], Some(name)).expect(name);
    bencher.counter(BytesCount::new(bytes.len())).bench(|| {
        let report = read(&bytes[..], format, |step| {
            black_box(step);
            Ok::<_, Infallible>(())
        });
        report.expect(name)
    });
}

#[divan::bench(args = FILES.iter().copied().filter(|name| !name.ends_with(".md")), sample_count = 10)]
fn skipped(bencher: Bencher<'_, '_>, name: &str) {
    let bytes = bytes(name);
    bencher.counter(BytesCount::new(bytes.len())).bench(|| {
        let values = serde_json::Deserializer::from_slice(&bytes).into_iter::<IgnoredAny>();
        values.take_while(Result::is_ok).count()
    });
}
