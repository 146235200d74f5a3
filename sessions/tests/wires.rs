//! The wire formats, over the corpus.

mod support;

use keepspan_sessions::Format;
use support::corpus_file;

#[test]
fn look() {
    for (name, format) in [
        ("openai-chat/cassettes.json", Format::Chat),
        ("openai-chat/swe-gym-openhands.json", Format::Chat),
        ("openai-chat/tau2-sft-train.jsonl", Format::Chat),
        ("openai-responses/cassettes.json", Format::Responses),
        ("anthropic-messages/cassettes.json", Format::Anthropic),
        ("gemini-api/cassettes.json", Format::Gemini),
    ] {
        let Some(given) = corpus_file(name, format) else { return };
        eprintln!("{name} {:?} {:?} {:?}", given.counts(), given.report.repairs, given.report.left_out);
        if format == Format::Anthropic || format == Format::Gemini {
            for (c, e) in &given.entries {
                eprintln!(
                    "  {c} {} {:?} {:?} {:?} {}",
                    e.place.line,
                    e.kind,
                    e.calls.len(),
                    e.answers,
                    e.text.chars().take(60).collect::<String>()
                );
            }
            eprintln!("{:?}", given.compactions);
        }
        for repair in given.report.repaired.iter().take(12) {
            eprintln!("   {repair}");
        }
    }
}
