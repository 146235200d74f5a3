//! Claude Code: a record a line; the blocks of one message are records of their own, in the order of the file.
//!
//! `parentUuid` is a tree in which parallel calls lose their results, so the order of the file is the session's.

use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use keepspan::Role;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    anthropic,
    blocks::{Block, Content, Text, piece},
};
use crate::{
    detect::Head,
    error::Fault,
    records::{Record, Source},
    session::{Piece, Session, Turn},
    step::{CompactionKind, Place},
};

pub(crate) fn looks_like(head: &Head) -> bool {
    let own = head.has("parentUuid") || head.has("isSidechain") || head.says("type", "file-history-snapshot");
    head.lines && own && (head.has("sessionId") || head.has("messageId"))
        || head.has("parentUuid") && head.has("message.role")
}

/// Records that the model never sees, or sees in another record.
const LEFT_OUT: &[&str] = &[
    "agent-name",
    "ai-title",
    "atis-latch",
    "attachment",
    "bridge-session",
    "custom-title",
    "file-history-snapshot",
    "frame-link",
    "last-prompt",
    "mode",
    "permission-mode",
    "pr-link",
    "progress",
    "queue-operation",
    "relocated",
    "result",
    "started",
    "summary",
    "worktree-state",
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    #[serde(borrow)]
    subtype: Option<Text<'a>>,
    #[serde(borrow)]
    session_id: Option<Text<'a>>,
    is_meta: Option<bool>,
    is_sidechain: Option<bool>,
    is_compact_summary: Option<bool>,
    #[serde(borrow)]
    message: Option<Message<'a>>,
    compact_metadata: Option<Compact>,
    #[serde(borrow)]
    microcompact_metadata: Option<Microcompact<'a>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    model: Option<Text<'a>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Compact {
    pre_tokens: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Microcompact<'a> {
    pre_tokens: Option<u64>,
    tokens_saved: Option<u64>,
    #[serde(borrow)]
    compacted_tool_ids: Option<Vec<Text<'a>>>,
}

#[derive(Default)]
struct Reader {
    /// The session's own records: whether they are of a sub-agent.
    sidechain: Option<bool>,
    /// A compaction whose summary comes in a record of its own.
    boundary: Option<(Option<u64>, Place)>,
    /// Of records, so that one that is written twice is read once.
    seen: HashSet<u64>,
}

pub(crate) fn read(source: &mut Source<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    let mut reader = Reader::default();
    source.each_record(session, |record, session| reader.record(record, session))?;
    reader.without_summary(session)
}

impl Reader {
    fn record(&mut self, record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
        let line: Line<'_> = record.parse("a Claude Code record")?;
        match &*line.kind {
            "user" | "assistant" => {
                let sidechain = line.is_sidechain == Some(true);
                if sidechain && !*self.sidechain.get_or_insert(sidechain) {
                    session.left_out("sidechain");
                    return Ok(());
                }
                self.sidechain.get_or_insert(sidechain);
                if !self.seen.insert(hash(record.text)) {
                    session.left_out("repeated record");
                    return Ok(());
                }
                if !session.has_begun() {
                    session.begin(line.session_id.as_deref(), record.place)?;
                }
                self.message(line, record, session)
            }
            "system" => self.system(line, record, session),
            kind => {
                match LEFT_OUT.iter().find(|known| **known == kind) {
                    Some(known) => session.left_out(known),
                    None => session.unknown(kind, record.place.line),
                }
                Ok(())
            }
        }
    }

    fn system(&mut self, line: Line<'_>, record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
        match line.subtype.as_deref() {
            Some("compact_boundary") => {
                self.without_summary(session)?;
                let before = line.compact_metadata.and_then(|compact| compact.pre_tokens);
                self.boundary = Some((before, record.place));
            }
            Some("microcompact_boundary") => {
                let cleared = line
                    .microcompact_metadata
                    .ok_or_else(|| record.lacks("a `microcompact_boundary` without `microcompactMetadata`"))?;
                let calls = cleared.compacted_tool_ids.into_iter().flatten().map(Arc::from).collect();
                let tokens = (cleared.pre_tokens, cleared.tokens_saved);
                session.compacted(CompactionKind::Cleared { calls }, tokens, record.place)?;
            }
            _ => session.left_out("system"),
        }
        Ok(())
    }

    fn message(&mut self, line: Line<'_>, record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
        let kind = &*line.kind;
        let message = line.message.ok_or_else(|| record.lacks(format!("a `{kind}` record without `message`")))?;
        let content = message.content.ok_or_else(|| record.lacks(format!("a `{kind}` message without `content`")))?;
        let content = record.part(content);
        if line.is_compact_summary == Some(true) {
            return self.summary(content, session);
        }
        self.without_summary(session)?;
        if kind == "user" {
            user(content, line.is_meta == Some(true), session)
        } else {
            let synthetic = message.model.as_deref() == Some("<synthetic>");
            assistant(content, message.id.as_deref(), synthetic, session)
        }
    }

    fn summary(&mut self, content: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
        let (before, place) = self.boundary.take().unwrap_or((None, content.place));
        let content: Content<'_> = content.parse("a summary")?;
        let texts = super::blocks::pieces(content, session, place);
        let text = texts.into_iter().find_map(|piece| if let Piece::Text(text) = piece { Some(text) } else { None });
        session.compacted(CompactionKind::Summary { text, kept_from: None }, (before, None), place)
    }

    /// Gives the compaction whose summary did not come.
    fn without_summary(&mut self, session: &mut Session<'_>) -> Result<(), Fault> {
        let Some((before, place)) = self.boundary.take() else { return Ok(()) };
        session.compacted(CompactionKind::Summary { text: None, kept_from: None }, (before, None), place)
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// The blocks of a message, or its text as one.
fn blocks(content: Record<'_>) -> Result<Vec<(Block<'_>, Record<'_>)>, Fault> {
    if content.text.starts_with('"') {
        let block = Block { text: Some(content.parse("text")?), ..Block::default() };
        return Ok(vec![(block, content)]);
    }
    content.elements()?.into_iter().map(|record| Ok((record.parse("a block")?, record))).collect()
}

/// Results, what a person typed, and what the program put in: marked as meta, or by its first words.
fn user(content: Record<'_>, meta: bool, session: &mut Session<'_>) -> Result<(), Fault> {
    for (block, record) in blocks(content)? {
        if block.kind.ends_with("tool_result") {
            anthropic::result(block, record, session)?;
            continue;
        }
        match piece(block, session, record.place) {
            Some(Piece::Text(text)) if meta || is_notice(&text) => session.notice(text, Role::User, record.place)?,
            Some(piece) => session.human_parts(vec![piece], record.place)?,
            None => {}
        }
    }
    Ok(())
}

fn is_notice(text: &str) -> bool {
    ["[Request interrupted by user", "<local-command-stdout>", "<local-command-stderr>", "<system-reminder>"]
        .iter()
        .any(|start| text.starts_with(start))
}

fn assistant(content: Record<'_>, id: Option<&str>, synthetic: bool, session: &mut Session<'_>) -> Result<(), Fault> {
    let mut turn = Turn::labelled(id);
    for (mut block, record) in blocks(content)? {
        if synthetic {
            // The program wrote it in the model's place.
            if let Some(text) = block.plain() {
                session.notice(text, Role::Assistant, record.place)?;
            }
        } else if block.kind.ends_with("tool_result") {
            session.turn(std::mem::replace(&mut turn, Turn::labelled(id)), record.place)?;
            anthropic::result(block, record, session)?;
        } else {
            anthropic::say(&mut turn, block, record, session)?;
        }
    }
    session.turn(turn, content.place)
}
