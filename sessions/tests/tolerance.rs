//! What the wild does to files, and what is no longer tolerated, in snippets.

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
    convert::Infallible,
    io::{self, BufReader, Read},
};

use keepspan_sessions::{DetectError, EntryKind, Format, MAX_LISTED, ReadError, RepairKind, Step, read};
use support::{Given, give};

const USER: &str = r#"{"type":"message","message":{"role":"user","content":"hi"}}"#;

fn pi(text: &str) -> Given {
    give(text.as_bytes(), Format::Pi).unwrap_or_else(|error| panic!("{error}"))
}

fn call(id: &str, name: &str) -> String {
    format!(
        r#"{{"type":"message","message":{{"role":"assistant","content":[{{"type":"toolCall","id":"{id}","name":"{name}","arguments":{{}}}}]}}}}"#
    )
}

fn result(id: &str, text: &str) -> String {
    format!(
        r#"{{"type":"message","message":{{"role":"toolResult","toolCallId":"{id}","toolName":"t","content":[{{"type":"text","text":"{text}"}}]}}}}"#
    )
}

fn repairs(given: &Given) -> Vec<String> {
    given.report.repaired.iter().map(ToString::to_string).collect()
}

#[test]
fn lines_that_are_no_records() {
    let given =
        pi(&format!("{USER}\r\n\r\n  \nnot json\n{USER} {USER}\n{USER} trailing\n[1\n{{\"type\":tru}}\n{USER}\n"));
    assert_eq!(given.report.entries, 5);
    assert_eq!(
        repairs(&given),
        [
            "line 2: skipped: an empty line",
            "line 3: skipped: an empty line",
            "line 4: skipped: not JSON (no object, or one that does not end on its line)",
            "line 5: 2 records on one line: all read",
            "line 6: skipped: not JSON (no object, or one that does not end on its line)",
            "line 7: skipped: not JSON (no object, or one that does not end on its line)",
            "line 8: skipped: not JSON (expected ident)",
        ]
    );
    assert_eq!(given.entries[2].1.place.offset as usize, given.entries[1].1.place.offset as usize + USER.len() + 1);
}

#[test]
fn the_end_of_the_file() {
    assert_eq!(repairs(&pi(&format!("{USER}\n"))), [""; 0]);
    assert_eq!(repairs(&pi(USER)), ["line 1: no line end after the last line: read"]);
    let cut = pi(&format!("{USER}\n{}", &USER[..20]));
    assert_eq!(
        repairs(&cut),
        ["line 2: skipped: the file ends inside this record", "line 2: no line end after the last line: read"]
    );
    assert_eq!((cut.report.entries, cut.report.lines), (1, 2));
}

#[test]
fn bytes_that_are_no_text() {
    let mut bytes = format!("{USER}\n{USER}\n{USER}\n").into_bytes();
    let at = bytes.len() / 2;
    bytes[at] = 0xff;
    let given = give(&bytes, Format::Pi).unwrap();
    assert_eq!(given.report.entries, 2);
    assert!(repairs(&given)[0].starts_with("line 2: skipped: not JSON (invalid utf-8"), "{:?}", repairs(&given));
    let marked = pi(&format!("\u{feff}{USER}\n"));
    assert_eq!((marked.report.entries, marked.entries[0].1.place.offset), (1, 3));
}

#[test]
fn text_stays_as_it_is() {
    let given = pi(r#"{"type":"message","message":{"role":"user","content":"a\r\nb\u001b[0m \ud83d\ude00\u200b"}}"#);
    assert_eq!(&*given.entries[0].1.text, "a\r\nb\u{1b}[0m 😀\u{200b}");
}

#[test]
fn unknown_kinds_once_each() {
    let mut file = String::from(USER);
    for number in 0..70 {
        file.push_str(&format!("\n{{\"type\":\"k{number}\"}}\n{{\"type\":\"k{number}\"}}"));
    }
    let given = pi(&file);
    assert_eq!((given.repairs("unknown-record"), given.repairs("more-unknown")), (64, 1));
    assert!(
        repairs(&given).contains(&"line 2: skipped: 2 of the unknown kind `k0`, the first of them here".to_owned())
    );
    let more = given.report.repaired.iter().find(|repair| repair.what == RepairKind::MoreUnknown { count: 12 });
    assert_eq!(more.map(|repair| repair.line), Some(130));
}

#[test]
fn the_list_of_repairs_is_bounded() {
    let given = pi(&format!("{USER}\n{}", "junk\n".repeat(MAX_LISTED + 5)));
    assert_eq!((given.report.repaired.len(), given.repairs("junk")), (MAX_LISTED, MAX_LISTED as u64 + 5));
}

#[test]
fn results_go_to_the_nearest_earlier_call() {
    let file = [call("a", "first"), call("a", "second"), result("a", "1"), result("a", "2"), result("a", "3")];
    let given = pi(&format!("{USER}\n{}\n", file.join("\n")));
    let results: Vec<_> = given.of_kind(EntryKind::Result).map(|entry| (&*entry.text, entry.orphan)).collect();
    assert_eq!(results, [("1", false), ("2", false), ("3", true)]);
    assert_eq!(
        repairs(&given),
        [
            "line 3: the id `a` is used again: results go to the nearest earlier call without one",
            "line 6: the result of `a` has no open call before it: an orphan"
        ]
    );
}

#[test]
fn calls_that_stay_open() {
    let given = pi(&format!("{}\n{}\n{}\n", call("a", "x"), call("b", "y"), result("b", "1")));
    assert_eq!(repairs(&given), ["line 1: the call `a` of `x` has no result: its exchange stays open"]);
}

#[test]
fn an_empty_result_is_its_record() {
    let record = result("a", "");
    let given = pi(&format!("{}\n{record}\n", call("a", "x")));
    assert_eq!(&*given.entries[1].1.text, record);
    assert_eq!(repairs(&given), ["line 2: an empty result: its record stands in as text"]);
}

/// One red pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

#[test]
fn pictures_are_no_text() {
    let picture = |data: &str| {
        format!(
            r#"{{"type":"message","message":{{"role":"toolResult","toolCallId":"a","toolName":"t","content":[{{"type":"text","text":"see"}},{{"type":"image","data":"{data}","mimeType":"image/png"}}]}}}}"#
        )
    };
    let given = pi(&format!("{}\n{}\n", call("a", "x"), picture(PNG)));
    let texts: Vec<_> = given.of_kind(EntryKind::Result).map(|entry| &*entry.text).collect();
    assert_eq!((texts, given.report.results), (vec!["see", ""], 1));
    assert_eq!(given.report.repair_count(), 0);
    let given = pi(&format!("{}\n{}\n", call("a", "x"), picture("aGVsbG8=")));
    assert_eq!(
        repairs(&given),
        ["line 2: a picture that is not in the file (5 bytes of unknown size in pixels): a note stands in its place"]
    );
    assert!(given.entries.iter().all(|(_, entry)| !entry.text.contains("aGVsbG8=")));
}

fn refused(text: &str, format: Format) -> String {
    match give(text.as_bytes(), format) {
        Err(error) => error.to_string(),
        Ok(given) => panic!("{given:?}"),
    }
}

#[test]
fn records_that_lack_what_they_must_have() {
    for (text, format, why) in [
        (r#"{"type":"message"}"#, Format::Pi, "a `message` record without `message`"),
        (r#"{"type":"message","message":{}}"#, Format::Pi, "a pi record: missing field `role`"),
        (r#"{"type":"compaction"}"#, Format::Pi, "a `compaction` record without `summary`"),
        (r#"{"role":"user"}"#, Format::Pi, "a pi record: missing field `type`"),
        (
            r#"{"type":"message","message":{"role":"toolResult","content":"x"}}"#,
            Format::Pi,
            "a `toolResult` without `toolCallId`",
        ),
        (
            r#"{"type":"message","message":{"role":"assistant","content":[{"type":"toolCall","id":"1"}]}}"#,
            Format::Pi,
            "a `toolCall` without `name`",
        ),
        (r#"{"type":"user"}"#, Format::ClaudeCode, "a `user` record without `message`"),
        (r#"{"type":"assistant","message":{}}"#, Format::ClaudeCode, "a `assistant` message without `content`"),
        (
            r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"1"}]}}"#,
            Format::ClaudeCode,
            "a `tool_use` without `name`",
        ),
        (
            r#"{"type":"system","subtype":"microcompact_boundary"}"#,
            Format::ClaudeCode,
            "a `microcompact_boundary` without `microcompactMetadata`",
        ),
        (r#"{"type":"response_item"}"#, Format::Codex, "no `payload`"),
        (
            r#"{"type":"response_item","payload":{"type":"function_call"}}"#,
            Format::Codex,
            "a `function_call` without `name`",
        ),
        (r#"{"type":"user.message"}"#, Format::Copilot, "`user.message` without `data`"),
        (
            r#"{"type":"tool.execution_complete","data":{}}"#,
            Format::Copilot,
            "`tool.execution_complete` without `toolCallId`",
        ),
        (r#"{"type":"context.append_message"}"#, Format::Kimi, "`context.append_message` without `message`"),
        (r#"{"kind":"MessageEvent"}"#, Format::OpenHands, "a `MessageEvent` without `llm_message`"),
        (r#"{"kind":"ActionEvent"}"#, Format::OpenHands, "an `ActionEvent` without `tool_name`"),
        (r#"{"messages":[{"content":"x"}]}"#, Format::Chat, "a chat message: missing field `role`"),
        (r#"{"messages":[{"content":"x"}]}"#, Format::Anthropic, "a message without `role`"),
        (r#"{"input":[{"type":"message"}]}"#, Format::Responses, "a message without `role`"),
        (r#"{"contents":[{"parts":[{"functionCall":{}}]}]}"#, Format::Gemini, "a Gemini content: missing field `name`"),
        (r#"{"messages":[{"content":"x"}]}"#, Format::GeminiCli, "a message without `type`"),
    ] {
        let error = refused(text, format);
        assert!(error.starts_with("line 1, byte ") && error.contains(why), "{text}: {error}");
        assert!(error.ends_with("mend the record, or name another format"), "{error}");
    }
}

#[test]
fn documents_are_whole_or_nothing() {
    for (text, error) in [
        (r#"{"messages":[{"role":"user","content":"x"}"#, "line 1: the file ends here, inside a value"),
        ("{\"a\":1,\n\"messages\":[", "line 2: the file ends here"),
        (
            r#"{"messages":[{"role":"user","content":"x"} {}]}"#,
            "line 1, byte 43: not JSON: a comma or a closing bracket",
        ),
        (
            r#"{"messages":[{"role":"user","content":"x"},]}"#,
            "line 1, byte 43: not JSON: a comma with nothing after it",
        ),
        ("{\"messages\":[\n{\"role\":\"user\",\"content\":tru}]}", "line 2, byte 14: not JSON: expected ident"),
        (r#"{"messages" []}"#, "line 1, byte 12: not JSON: a colon is expected"),
        (r#"{messages:[]}"#, "line 1, byte 1: not JSON: a key is expected"),
    ] {
        let found = refused(text, Format::Chat);
        assert!(found.starts_with(error), "{text}: {found}");
    }
}

#[test]
fn nothing_of_the_format() {
    assert_eq!(
        refused("{\"type\":\"x\"}\nfoo\n", Format::Pi),
        "no record of the format `pi` in 2 lines: is it the right file, and the right format?"
    );
    assert!(matches!(give(b"", Format::Chat), Err(ReadError::Nothing { format: Format::Chat, lines: 0 })));
}

#[test]
fn a_step_that_is_refused_ends_the_reading() {
    let mut steps = 0;
    let file = format!("{USER}\n").repeat(5);
    let read = read(file.as_bytes(), Format::Pi, |_| {
        steps += 1;
        if steps == 3 { Err("enough") } else { Ok(()) }
    });
    assert_eq!((read.unwrap_err().to_string(), steps), ("enough".to_owned(), 3));
}

/// Gives a file again and again; fails at the end.
struct Endless<'a> {
    piece: &'a [u8],
    left: usize,
    given: &'a std::cell::Cell<usize>,
}

impl Read for Endless<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.left = self.left.checked_sub(1).ok_or_else(|| io::Error::other("gone"))?;
        self.given.set(self.given.get() + 1);
        into[..self.piece.len()].copy_from_slice(self.piece);
        Ok(self.piece.len())
    }
}

/// Reads pieces that never end, after a beginning: what is given, and how many pieces were read by then.
fn endless(begin: &str, piece: &str, format: Format) -> (usize, String) {
    let given = std::cell::Cell::new(0);
    let pieces = Endless { piece: piece.as_bytes(), left: 20_000, given: &given };
    let input = BufReader::with_capacity(piece.len().max(64), begin.as_bytes().chain(pieces));
    let (mut last, mut entries) = (0, 0);
    let error = read(input, format, |step| {
        if let Step::Entry(_) = step {
            entries += 1;
            if entries == 1_000 {
                last = given.get();
            }
        }
        Ok::<_, Infallible>(())
    });
    (last, error.unwrap_err().to_string())
}

#[test]
fn what_was_read_is_given_before_the_rest_is_read() {
    let long = "x".repeat(500);
    let line = format!("{{\"type\":\"message\",\"message\":{{\"role\":\"user\",\"content\":\"{long}\"}}}}\n");
    let chat = format!("{{\"role\":\"user\",\"content\":\"{long}\"}},");
    for (begin, piece, format) in
        [("", &line, Format::Pi), ("{\"messages\":[", &chat, Format::Chat), ("[", &chat, Format::Chat)]
    {
        let (read, error) = endless(begin, piece, format);
        // The beginning is looked at before anything is given, and that is 4 MB at most.
        assert!(read > 0 && read < 10_000, "{format}: {read}");
        assert!(error.contains("the input failed at line") && error.contains("gone"), "{error}");
    }
}

#[test]
fn lines_that_are_longer_than_the_beginning() {
    for size in [70_000, 5_000_000] {
        let long = "x".repeat(size);
        let line = format!("{{\"messages\":[{{\"role\":\"user\",\"content\":\"{long}\"}}]}}\n");
        let given = give(format!("{line}{line}").as_bytes(), Format::Chat).unwrap();
        assert_eq!((given.conversations.len(), given.report.entries), (2, 2));
        assert_eq!(given.entries[1].1.place.line, 2);
    }
}

#[test]
fn formats_by_name() {
    for format in Format::ALL {
        assert_eq!(format.name().parse(), Ok(*format));
        assert_eq!(format.to_string(), format.name());
    }
    assert_eq!(" Claude-Code ".parse(), Ok(Format::ClaudeCode));
    let error = "cobol".parse::<Format>().unwrap_err().to_string();
    assert!(error.starts_with("`cobol` is no format: name one of claude-code, pi, codex,"), "{error}");
    assert!(error.ends_with("responses, anthropic, gemini"), "{error}");
    assert_eq!(Format::detect(b"", None), Err(DetectError::Empty));
    assert!(DetectError::Unknown.to_string().contains("tau-bench"));
}

#[test]
fn formats_by_their_beginning() {
    for (head, format) in [
        (r#"{"role":"user","content":"x"}"#.to_owned() + "\n" + r#"{"role":"assistant","content":"y"}"#, Format::Chat),
        (r#"[{"role":"user","content":"x"}]"#.into(), Format::Chat),
        (r#"{"model":"m","messages":[{"role":"system","content":"x"}]}"#.into(), Format::Chat),
        (r#"{"id":"c","choices":[{"message":{"role":"assistant","content":"x"}}]}"#.into(), Format::Chat),
        (
            r#"{"model":"m","max_tokens":5,"system":"s","messages":[{"role":"user","content":"x"}]}"#.into(),
            Format::Anthropic,
        ),
        (r#"[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1"}]}]"#.into(), Format::Anthropic),
        (
            r#"{"id":"msg_1","role":"assistant","content":[{"type":"tool_use"}],"stop_reason":null}"#.into(),
            Format::Anthropic,
        ),
        (r#"{"model":"m","input":"x"}"#.into(), Format::Responses),
        (r#"[{"type":"reasoning","summary":[]},{"type":"function_call","name":"f"}]"#.into(), Format::Responses),
        (r#"{"contents":[{"parts":[{"text":"x"}]}]}"#.into(), Format::Gemini),
        (r#"[{"role":"user","parts":[{"text":"x"}]}]"#.into(), Format::Gemini),
        (
            r#"{"type":"session.start","data":{"sessionId":"s"},"id":"1","timestamp":"t","parentId":null}"#.into(),
            Format::Copilot,
        ),
        (
            r#"{"kind":"SystemPromptEvent","id":"1","system_prompt":{"type":"text","text":"s"}}"#.into(),
            Format::OpenHands,
        ),
    ] {
        assert_eq!(Format::detect(head.as_bytes(), None), Ok(format), "{head}");
    }
}
