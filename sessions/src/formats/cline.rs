//! cline: the messages of a session, or what its compaction left of them. The system prompt stands after them.

use std::sync::Arc;

use keepspan::Role;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    blocks::{Block, Content, Text, json, pieces},
    walk::{Name, documents, each},
};
use crate::{
    detect::Head,
    error::Fault,
    records::{Record, Source, parse},
    report::RepairKind,
    session::{NewCall, Outcome, Piece, Session, Turn},
    step::CompactionKind,
};

pub(crate) fn looks_like(head: &Head) -> bool {
    head.has("sessionId") && head.has("messages[].role") && head.has("messages[].content")
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    role: Text<'a>,
    #[serde(borrow)]
    content: &'a RawValue,
    #[serde(borrow)]
    metadata: Option<Metadata<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow)]
    kind: Option<Text<'a>>,
    tokens_before: Option<u64>,
}

/// What tells the blocks apart.
#[derive(Deserialize)]
struct Tag<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
}

#[derive(Deserialize)]
struct ToolResult<'a> {
    #[serde(borrow)]
    tool_use_id: Text<'a>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    is_error: Option<bool>,
}

pub(crate) fn read(source: &mut Source<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    documents(source, session, |document, session| {
        let (place, mut name, mut told) = (document.place()?, Name::default(), false);
        document.object()?;
        while let Some(key) = document.key()? {
            match &*key {
                "sessionId" => name.is(document.value()?),
                "messages" => {
                    // A prompt that stands before them began it.
                    if !session.has_begun() {
                        session.begin(name.get(), place)?;
                    }
                    told = true;
                    each(document, session, message)?;
                }
                "system_prompt" => {
                    let record = document.value()?;
                    if told {
                        session.repair(record.place.line, RepairKind::Late { what: "the system prompt" });
                    } else {
                        session.begin(name.get(), place)?;
                    }
                    let prompt: Option<Text<'_>> = record.parse("the `system_prompt`")?;
                    session.system(prompt.unwrap_or_default(), record.place)?;
                }
                _ => document.skip()?,
            }
        }
        Ok(())
    })
}

fn message(record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    let message: Message<'_> = record.parse("a cline message")?;
    let place = record.place;
    let blocks: Vec<&RawValue> = match message.content.get() {
        list if list.starts_with('[') => parse(list, "the content of a cline message", place)?,
        _ => vec![message.content],
    };
    let metadata = message.metadata.as_ref();
    match metadata.and_then(|metadata| metadata.kind.as_deref()) {
        Some("compaction_summary") => {
            let text = summary(&blocks, record)?;
            let kind = CompactionKind::Summary { text: Some(text), kept_from: None };
            let before = metadata.and_then(|metadata| metadata.tokens_before);
            return session.compacted(kind, (before, None), place);
        }
        // Its notices stand in the messages of the user.
        Some("compaction") => {
            session.compacted(CompactionKind::Summary { text: None, kept_from: None }, (None, None), place)?;
        }
        _ => {}
    }
    match &*message.role {
        "user" => blocks.into_iter().try_for_each(|block| given(block, record, session)),
        "assistant" => {
            let turn = turn(&blocks, message.id.as_deref(), record, session)?;
            session.turn(turn, place)
        }
        role => {
            session.unknown(&format!("message {role}"), place.line);
            Ok(())
        }
    }
}

/// A block; text alone is one, too.
fn block<'a>(raw: &'a RawValue, record: Record<'_>) -> Result<Block<'a>, Fault> {
    if raw.get().starts_with('"') {
        let text = parse(raw.get(), "the text of a cline message", record.place)?;
        return Ok(Block { text: Some(text), ..Block::default() });
    }
    parse(raw.get(), "a block of a cline message", record.place)
}

fn summary(blocks: &[&RawValue], record: Record<'_>) -> Result<Arc<str>, Fault> {
    let mut texts: Vec<Arc<str>> = Vec::new();
    for raw in blocks {
        texts.extend(block(raw, record)?.plain());
    }
    Ok(texts.join("\n").into())
}

fn turn(
    blocks: &[&RawValue],
    label: Option<&str>,
    record: Record<'_>,
    session: &mut Session<'_>,
) -> Result<Turn, Fault> {
    let mut turn = Turn::labelled(label);
    for raw in blocks {
        let mut block = block(raw, record)?;
        match &*block.kind {
            "thinking" => {
                let sealed = block.signature.is_some_and(|signature| !signature.is_empty());
                turn.think(block.thinking.unwrap_or_default(), sealed);
            }
            "redacted_thinking" => turn.think(block.data.unwrap_or_default(), true),
            "tool_use" => {
                let name = block.name.as_deref().ok_or_else(|| record.lacks("a `tool_use` without `name`"))?;
                turn.call(NewCall::new(block.id.as_deref(), name, block.arguments()));
            }
            _ => match block.plain() {
                Some(text) => turn.say(text),
                None => session.unknown(&format!("block {}", &*block.kind), record.place.line),
            },
        }
    }
    Ok(turn)
}

/// A block of a message in the role of the user.
fn given(raw: &RawValue, record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    let place = record.place;
    let tag: Option<Tag<'_>> = serde_json::from_str(raw.get()).ok();
    if tag.is_some_and(|tag| &*tag.kind == "tool_result") {
        return result(parse(raw.get(), "a `tool_result`", place)?, raw, record, session);
    }
    let mut block = block(raw, record)?;
    if let Some(picture) = block.picture() {
        return session.picture(picture, place);
    }
    if &*block.kind == "file" {
        let Content::Text(text) = block.content else { return Err(record.lacks("a `file` without `content`")) };
        return session.notice(text, Role::User, place);
    }
    match block.plain() {
        Some(notice) if notice.starts_with("<SYSTEM_NOTICE>") => session.notice(notice, Role::User, place),
        Some(text) => session.human(text, place),
        None => {
            session.unknown(&format!("block {}", &*block.kind), place.line);
            Ok(())
        }
    }
}

fn result(result: ToolResult<'_>, raw: &RawValue, record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    let parts = match result.content {
        None => Vec::new(),
        Some(content) if of_blocks(content) => {
            pieces(parse(content.get(), "the content of a `tool_result`", record.place)?, session, record.place)
        }
        // One answer a query, as JSON.
        Some(content) => vec![Piece::Text(json(content.get()))],
    };
    let (call, tool) = (Some(&*result.tool_use_id), result.name.as_deref());
    let failed = result.is_error.unwrap_or_default();
    session.result(Outcome { call, tool, failed, parts, ..Outcome::default() }, raw.get(), record.place)
}

/// Whether content is text, null, or blocks that say what they are.
fn of_blocks(content: &RawValue) -> bool {
    !content.get().starts_with('[') || serde_json::from_str::<Vec<Tag<'_>>>(content.get()).is_ok()
}
