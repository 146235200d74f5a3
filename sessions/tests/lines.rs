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
