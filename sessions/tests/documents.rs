//! The documents of agents and benchmarks, and aider's Markdown.

mod support;
use keepspan_sessions::{EntryKind, Format};
use support::corpus_file;

#[test]
fn dump() {
    for (name, format) in [
        ("goose/real-export.json", Format::Goose),
        ("cline/session.messages.json", Format::Cline),
        ("cline/agentic.compaction.json", Format::Cline),
        ("cline/basic.compaction.json", Format::Cline),
        ("swe-agent/requests-1921-claude35.traj", Format::SweAgent),
        ("swe-agent/marshmallow-1867-fncall-source.traj", Format::SweAgent),
        ("mini-swe-agent/github_issue.traj.json", Format::MiniSweAgent),
        ("tau-bench/airline-gpt4o-writes.json", Format::TauBench),
        ("tau2-bench/airline-gptoss-duplicate-writes.json", Format::Tau2),
        ("tau2-bench/telecom-gpt41.json", Format::Tau2),
        ("tau2-bench/airline-toolorchestra-gpt5.json", Format::Tau2),
        ("react-text/swe-smith.json", Format::SweSmith),
        ("nebius/swe-agent.json", Format::Nebius),
        ("openhands/llm-log-fncall.json", Format::OpenHands),
        ("openhands/llm-log-nonfncall-deepseek.json", Format::OpenHands),
        ("inspect/browser.json", Format::Inspect),
        ("inspect/log-images-tool-calls.json", Format::Inspect),
        ("aider/2024-08-06-two-sessions.md", Format::Aider),
    ] {
        let Some(given) = corpus_file(name, format) else { return };
        let n = given.of_kind(EntryKind::Notice).count();
        let s = given.of_kind(EntryKind::System).count();
        let f = given.entries.iter().filter(|(_, e)| e.failed).count();
        eprintln!(
            "{name}: {:?} notices {n} systems {s} failed {f} compactions {} conv {:?}\n   {:?}\n   {:?} bytes {} lines {}",
            given.counts(),
            given.compactions.len(),
            given.conversations.iter().map(|c| c.name.to_string()).collect::<Vec<_>>(),
            given.report.repairs,
            given.report.left_out,
            given.report.bytes,
            given.report.lines
        );
        for r in given.report.repaired.iter().take(12) {
            eprintln!("     {r}");
        }
    }
}

#[test]
fn aid() {
    let Some(given) = corpus_file("aider/2024-08-06-two-sessions.md", Format::Aider) else { return };
    for (c, e) in &given.entries {
        eprintln!(
            "{c} {:?} {:5} {} {:?} ... {:?}",
            e.place.line,
            format!("{:?}", e.kind),
            e.failed,
            e.text.chars().take(60).collect::<String>(),
            e.text.chars().rev().take(30).collect::<Vec<_>>().into_iter().rev().collect::<String>()
        );
    }
}
