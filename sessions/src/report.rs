//! What was read, and what was left out or put right.

use std::{collections::BTreeMap, fmt};

/// Repairs that a [`Report`] lists; more are only counted.
pub const MAX_LISTED: usize = 1_000;

/// What reading a file came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Conversations.
    pub conversations: u64,
    /// Entries of all conversations.
    pub entries: u64,
    /// Calls of all entries.
    pub calls: u64,
    /// Results of all conversations, orphans included; a result of several parts counts once.
    pub results: u64,
    /// Compactions.
    pub compactions: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Lines read, an unfinished last one included.
    pub lines: u64,
    /// What was skipped or repaired, by line; at most [`MAX_LISTED`].
    pub repaired: Vec<Repair>,
    /// How many there were, those beyond the list included, by [`RepairKind::name`].
    pub repairs: BTreeMap<&'static str, u64>,
    /// Records and parts of a known kind that the model never saw, or saw elsewhere in the file: how many, by kind.
    pub left_out: BTreeMap<&'static str, u64>,
}

impl Report {
    /// All repairs, those beyond the list included.
    pub fn repair_count(&self) -> u64 {
        self.repairs.values().copied().fold(0, u64::saturating_add)
    }
}

/// Something that was skipped or put right.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repair {
    /// The line, from 1.
    pub line: u64,
    /// What.
    pub what: RepairKind,
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

/// Kinds of repair.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RepairKind {
    /// The line, or what is left of it, is not JSON.
    #[error("skipped: not JSON ({why})")]
    Junk {
        /// What the parser said.
        why: String,
    },
    /// The last line ends inside a value.
    #[error("skipped: the file ends inside this record")]
    CutOff,
    /// The line is empty.
    #[error("skipped: an empty line")]
    Blank,
    /// A line holds more than one record.
    #[error("{records} records on one line: all read")]
    SharedLine {
        /// How many.
        records: u64,
    },
    /// The file does not end with a line end.
    #[error("no line end after the last line: read")]
    NoFinalNewline,
    /// A result whose call is not in the conversation, or has its result.
    #[error("the result of `{call}` has no open call before it: an orphan")]
    OrphanResult {
        /// The id of the call, or the one minted for it.
        call: String,
    },
    /// A call that no result followed.
    #[error("the call `{call}` of `{tool}` has no result: its exchange stays open")]
    UnansweredCall {
        /// The id of the call.
        call: String,
        /// The tool.
        tool: String,
    },
    /// An id that an earlier call of the conversation has.
    #[error("the id `{call}` is used again: results go to the nearest earlier call without one")]
    DuplicateId {
        /// The id of the call.
        call: String,
    },
    /// A call or result without an id.
    #[error("no id: paired by order, as `{call}`")]
    NoId {
        /// The id that was minted.
        call: String,
    },
    /// A result without text.
    #[error("an empty result: its record stands in as text")]
    EmptyResult,
    /// A picture whose bytes or size are not in the file.
    #[error("a picture that is not in the file ({what}): a note stands in its place")]
    NoPicture {
        /// What is there instead.
        what: String,
    },
    /// Something that stands before the messages in the session, and after them in the file.
    #[error("{what} comes after the messages it belongs before: a reader that does not look back gives it late")]
    Late {
        /// What.
        what: &'static str,
    },
    /// Text that the file keeps elsewhere, and does not have there.
    #[error("`{what}` is not in the file: the reference stands for the text")]
    NoText {
        /// The reference.
        what: String,
    },
    /// A kind of record or part that this reader does not know.
    #[error("skipped: {count} of the unknown kind `{kind}`, the first of them here")]
    UnknownRecord {
        /// The kind.
        kind: String,
        /// How many the file has.
        count: u64,
    },
    /// More kinds of unknown records than are told apart.
    #[error("skipped: {count} of further unknown kinds")]
    MoreUnknown {
        /// How many.
        count: u64,
    },
    /// What could be read in two ways.
    #[error("ambiguous: {what}")]
    Ambiguous {
        /// What, and which way it was read.
        what: String,
    },
}

impl RepairKind {
    /// Its name in [`Report::repairs`]: `unanswered-call`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Junk { .. } => "junk",
            Self::CutOff => "cut-off",
            Self::Blank => "blank",
            Self::SharedLine { .. } => "shared-line",
            Self::NoFinalNewline => "no-final-newline",
            Self::OrphanResult { .. } => "orphan-result",
            Self::UnansweredCall { .. } => "unanswered-call",
            Self::DuplicateId { .. } => "duplicate-id",
            Self::NoId { .. } => "no-id",
            Self::EmptyResult => "empty-result",
            Self::NoPicture { .. } => "no-picture",
            Self::Late { .. } => "late",
            Self::NoText { .. } => "no-text",
            Self::UnknownRecord { .. } => "unknown-record",
            Self::MoreUnknown { .. } => "more-unknown",
            Self::Ambiguous { .. } => "ambiguous",
        }
    }
}
