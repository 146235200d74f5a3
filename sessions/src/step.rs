//! What a file says, one step after the other.

use std::sync::Arc;

use keepspan::NewSpan;

/// Where in the file a record begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The line, from 1.
    pub line: u64,
    /// The number of bytes before it.
    pub offset: u64,
}

/// One step of a recorded session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Step {
    /// What follows is of this conversation, until the next begins.
    Begins(Conversation),
    /// A span enters.
    Entry(Entry),
    /// The agent pruned its own context here.
    Compacted(Compaction),
}

/// A conversation of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Conversation {
    /// Its task, session or source, where the file names it; else its number.
    pub name: Arc<str>,
    /// Its number in the file, from 1.
    pub number: u64,
    /// Where it begins.
    pub place: Place,
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EntryKind {
    /// A system or developer prompt.
    System,
    /// What a person said.
    Human,
    /// What the program around the model said in between.
    Notice,
    /// The model's reasoning.
    Thinking,
    /// The model's text, calls, or both.
    Model,
    /// A tool's result, or a part of one.
    Result,
}

/// One span, ready to be pushed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Entry {
    /// The span: origin, role, tool, calls and answers are set.
    pub span: NewSpan,
    /// Its content, shared with the span: of a turn with calls, the text and one line of JSON a call. Empty for a picture.
    pub text: Arc<str>,
    /// What it is.
    pub kind: EntryKind,
    /// The calls that it makes.
    pub calls: Vec<Call>,
    /// Of a result, the id of its call, also where the file has no such call.
    pub answers: Option<Arc<str>>,
    /// Of a result, the tool, where known.
    pub tool: Option<Arc<str>>,
    /// Whether the file says that the tool failed.
    pub failed: bool,
    /// Whether it is the result of a call that the conversation does not have.
    pub orphan: bool,
    /// Where its record begins.
    pub place: Place,
}

/// A call that the model makes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Call {
    /// The id of the file, or one that the reader minted where it has none. Not unique: files use ids again.
    pub id: Arc<str>,
    /// The tool.
    pub name: Arc<str>,
    /// The arguments as the file has them: mostly JSON, free text for some tools.
    pub arguments: Arc<str>,
}

impl Call {
    /// The arguments as JSON; `None` where they are free text.
    pub fn json(&self) -> Option<serde_json::Value> {
        serde_json::from_str(&self.arguments).ok()
    }
}

/// A pruning that the session records of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compaction {
    /// What became of the context.
    pub kind: CompactionKind,
    /// The tokens before, by the agent's own count.
    pub tokens_before: Option<u64>,
    /// The tokens saved, by the agent's own count.
    pub tokens_saved: Option<u64>,
    /// Where its record begins.
    pub place: Place,
}

/// What a compaction did. Numbers of entries count those of the conversation, from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompactionKind {
    /// A summary took the place of what stood before.
    Summary {
        /// The summary; `None` where the file has none, or an opaque one.
        text: Option<Arc<str>>,
        /// The number of the first entry that stayed; `None` where none did.
        kept_from: Option<u64>,
    },
    /// The results of these calls were cleared.
    Cleared {
        /// Their ids, in the order of the file. They need not be in it: a file can begin in the middle of a session.
        calls: Vec<Arc<str>>,
    },
    /// These entries were forgotten, wherever they stand.
    Forgot {
        /// Their numbers.
        entries: Vec<u64>,
        /// The summary that stands for them, if any.
        text: Option<Arc<str>>,
    },
    /// These messages took the place of all that stood before.
    Replaced {
        /// Their texts.
        texts: Vec<Arc<str>>,
        /// A summary that is recorded beside them.
        summary: Option<Arc<str>>,
    },
}
