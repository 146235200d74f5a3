//! Every file of the corpus: into a window, in pieces, cut off and damaged.

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
    collections::BTreeMap,
    convert::Infallible,
    io::{BufReader, Read},
    path::{Path, PathBuf},
};

use keepspan::{ContextState, Episode, Spans, Window, store::MemoryStore};
use keepspan_sessions::{EntryKind, Format, Step, read};
use support::{corpus, give};

/// The files, with their formats.
fn files() -> Vec<(PathBuf, Format, Vec<u8>)> {
    let Some(folder) = corpus() else { return Vec::new() };
    let mut files = Vec::new();
    for folder in std::fs::read_dir(folder).unwrap() {
        let folder = folder.unwrap().path();
        if !folder.is_dir() || folder.ends_with("licences") {
            continue;
        }
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let bytes = std::fs::read(&path).unwrap();
            let head = &bytes[..bytes.len().min(64 << 10)];
            let format = Format::detect(head, path.to_str());
            files.push((path.clone(), format.unwrap_or_else(|error| panic!("{path:?}: {error}")), bytes));
        }
    }
    files.sort();
    assert!(files.len() >= 34, "{} files", files.len());
    files
}

/// By folder, what the files in it are.
#[test]
fn formats_by_folder() {
    for (path, format, _) in files() {
        let folder = path.parent().and_then(Path::file_name).and_then(|name| name.to_str()).unwrap();
        let expected = match folder {
            "kimi-cli" => Format::Kimi,
            "tau2-bench" => Format::Tau2,
            "react-text" => Format::SweSmith,
            "openai-chat" => Format::Chat,
            "openai-responses" => Format::Responses,
            "anthropic-messages" => Format::Anthropic,
            "gemini-api" => Format::Gemini,
            name => name.parse().unwrap_or_else(|error| panic!("{path:?}: {error}")),
        };
        assert_eq!(format, expected, "{path:?}");
    }
}

#[derive(ContextState)]
#[context(budget = 1_000_000_000)]
struct Everything {
    #[evictable(otherwise)]
    all: Spans,
}

/// What the window says of a conversation agrees with what the reader said of it.
#[test]
fn every_entry_enters_a_window() {
    for (path, format, bytes) in files() {
        let given = give(&bytes, format).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        let (mut open, mut orphans, mut entered) = (0, 0, 0);
        for number in 1..=given.conversations.len() {
            let episode = Episode::new(format!("c{number}"), "test");
            let mut window = Window::<Everything, _>::open(MemoryStore::new(), episode).unwrap();
            for (_, entry) in given.entries.iter().filter(|(conversation, _)| *conversation == number) {
                let pushed = window.lanes().route(entry.span.clone());
                pushed.unwrap_or_else(|error| panic!("{path:?}, line {}: {error}", entry.place.line));
                entered += 1;
            }
            open += window.open_calls().len() as u64;
            orphans += window.orphans().len() as u64;
        }
        assert_eq!(entered, given.report.entries, "{path:?}");
        assert_eq!(open, given.repairs("unanswered-call"), "{path:?}");
        let orphan_entries = given.entries.iter().filter(|(_, entry)| entry.orphan).count() as u64;
        assert_eq!(orphans, orphan_entries, "{path:?}");
        assert!(given.repairs("orphan-result") <= orphans, "{path:?}");
    }
}

/// What every reading holds to: places ascend, conversations are numbered, and counts are those of the steps.
#[test]
fn the_report_counts_the_steps() {
    for (path, format, bytes) in files() {
        let given = give(&bytes, format).unwrap();
        assert_eq!(given.report.bytes, bytes.len() as u64, "{path:?}");
        let newlines = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        let unfinished = u64::from(bytes.last().is_some_and(|byte| *byte != b'\n'));
        assert_eq!(given.report.lines, newlines + unfinished, "{path:?}");
        assert_eq!(given.report.conversations, given.conversations.len() as u64, "{path:?}");
        assert_eq!(given.report.entries, given.entries.len() as u64, "{path:?}");
        assert_eq!(given.report.compactions, given.compactions.len() as u64, "{path:?}");
        let calls: usize = given.entries.iter().map(|(_, entry)| entry.calls.len()).sum();
        assert_eq!(given.report.calls, calls as u64, "{path:?}");
        let repairs: u64 = given.report.repairs.values().sum();
        assert_eq!(given.report.repair_count(), repairs, "{path:?}");
        let ends: Vec<_> = (0..bytes.len()).filter(|at| bytes[*at] == b'\n').collect();
        for (_, entry) in &given.entries {
            assert_eq!(entry.answers.is_some(), entry.kind == EntryKind::Result, "{path:?} {:?}", entry.place);
            assert!(entry.place.line >= 1 && entry.place.line <= given.report.lines, "{path:?} {:?}", entry.place);
            let line = 1 + ends.partition_point(|end| (*end as u64) < entry.place.offset);
            assert_eq!(entry.place.line, line as u64, "{path:?} {:?}", entry.place);
        }
    }
}

/// What a file gives, also where it ends in an error.
fn texts(input: impl Read, capacity: usize, format: Format) -> (Vec<String>, Result<(), String>) {
    let mut texts = Vec::new();
    let read = read(BufReader::with_capacity(capacity, input), format, |step| {
        texts.push(match step {
            Step::Entry(entry) => format!("{:?} {:?} {:?} {}", entry.kind, entry.place, entry.answers, entry.text),
            other => format!("{other:?}"),
        });
        Ok::<_, Infallible>(())
    });
    (texts, read.map(drop).map_err(|error| error.to_string()))
}

#[test]
fn a_file_in_pieces_gives_the_same() {
    for (path, format, bytes) in files() {
        let whole = texts(&bytes[..], bytes.len(), format);
        for capacity in [1, 61, 4_093] {
            if capacity == 1 && bytes.len() > 100_000 {
                continue;
            }
            assert!(texts(&bytes[..], capacity, format) == whole, "{path:?} by {capacity}");
        }
    }
}

/// A small generator, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }
}

#[test]
fn a_file_that_was_cut_off_gives_what_it_has() {
    for (path, format, bytes) in files() {
        let (whole, _) = texts(&bytes[..], 1 << 16, format);
        let mut random = Random(bytes.len() as u64 | 1);
        // Of lines, the first makes them lines.
        let first = bytes.iter().position(|byte| *byte == b'\n').filter(|_| path.extension() == Some("jsonl".as_ref()));
        let first = first.map_or(0, |end| end + 2);
        for _ in 0..12 {
            let cut = (first + random.below(100_000)).min(bytes.len());
            let (given, _) = texts(&bytes[..cut], 1 << 16, format);
            // The last can be what stood before the cut of it.
            let sure = given.len().saturating_sub(1);
            assert!(whole.starts_with(&given[..sure]), "{path:?} cut at {cut}");
        }
    }
}

#[test]
fn a_damaged_file_is_read_or_refused() {
    let mut outcomes = BTreeMap::<bool, usize>::new();
    for (path, format, bytes) in files() {
        let mut random = Random(bytes.len() as u64 | 1);
        for _ in 0..16 {
            let from = random.below(bytes.len());
            let from = if random.below(2) == 0 { 0 } else { from };
            let end = (from + random.below(80_000)).min(bytes.len());
            let mut damaged = bytes[from..end].to_vec();
            for _ in 0..=random.below(12) {
                let at = random.below(damaged.len());
                let with = [0, b'"', b'{', b'}', b'[', b']', b'\\', b'\n', 0xff, b'0', b',', b':'][random.below(12)];
                if let Some(byte) = damaged.get_mut(at) {
                    *byte = with;
                }
            }
            let (_, read) = texts(&damaged[..], 1 << 16, format);
            if let Err(error) = &read {
                assert!(!error.is_empty(), "{path:?}");
            }
            *outcomes.entry(read.is_ok()).or_default() += 1;
            let _ = Format::detect(&damaged, None);
        }
    }
    eprintln!("read, or refused: {outcomes:?}");
    assert!(corpus().is_none() || outcomes.len() == 2, "{outcomes:?}");
}
