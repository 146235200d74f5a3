//! What the tests share: the corpus, and a reading of a file with all that it gave.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::{convert::Infallible, path::PathBuf};

use keepspan_sessions::{Compaction, Conversation, Entry, EntryKind, Format, ReadError, Report, Step, read};

/// The folder of the corpus; says that the test is skipped where there is none.
pub fn corpus() -> Option<PathBuf> {
    let folder = std::env::var_os("KEEPSPAN_CORPUS").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("skipped: KEEPSPAN_CORPUS is not set");
    }
    folder
}

/// All that a file gave.
#[derive(Debug, Default)]
pub struct Given {
    pub conversations: Vec<Conversation>,
    /// With the number of the conversation, from 1.
    pub entries: Vec<(usize, Entry)>,
    /// With the number of entries before, of all conversations.
    pub compactions: Vec<(usize, Compaction)>,
    pub report: Report,
}

impl Given {
    pub fn of_kind(&self, kind: EntryKind) -> impl Iterator<Item = &Entry> {
        self.entries.iter().map(|(_, entry)| entry).filter(move |entry| entry.kind == kind)
    }

    /// Human, model, thinking, calls, results: the columns of the corpus. A model's entry counts where it says something
    /// beside its calls.
    pub fn counts(&self) -> [u64; 5] {
        let kind = |kind| self.of_kind(kind).count() as u64;
        let said = self.of_kind(EntryKind::Model).filter(|entry| says(entry)).count() as u64;
        [kind(EntryKind::Human), said, kind(EntryKind::Thinking), self.report.calls, self.report.results]
    }

    pub fn repairs(&self, name: &str) -> u64 {
        self.report.repairs.get(name).copied().unwrap_or_default()
    }

    pub fn left_out(&self, kind: &str) -> u64 {
        self.report.left_out.get(kind).copied().unwrap_or_default()
    }
}

fn says(entry: &Entry) -> bool {
    entry.calls.is_empty() || !entry.text.starts_with(&format!("{{\"id\":\"{}\"", entry.calls[0].id))
}

pub fn give(bytes: &[u8], format: Format) -> Result<Given, ReadError> {
    let mut given = Given::default();
    let report = read(bytes, format, |step| {
        match step {
            Step::Begins(conversation) => given.conversations.push(conversation),
            Step::Entry(entry) => given.entries.push((given.conversations.len(), entry)),
            Step::Compacted(compaction) => given.compactions.push((given.entries.len(), compaction)),
            other => panic!("{other:?}"),
        }
        Ok::<_, Infallible>(())
    })?;
    given.report = report;
    Ok(given)
}

/// Reads a file of the corpus as the format that it is told to have.
pub fn corpus_file(name: &str, format: Format) -> Option<Given> {
    let bytes = std::fs::read(corpus()?.join(name)).expect(name);
    let head = &bytes[..bytes.len().min(64 << 10)];
    assert_eq!(Format::detect(head, Some(name)), Ok(format), "{name}");
    Some(give(&bytes, format).unwrap_or_else(|error| panic!("{name}: {error}")))
}
