//! Anthropic Messages: blocks; the results of the provider's own tools stand in the model's turn.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    blocks::{Block, Text, json, piece, pieces},
    wire::{self, Shape},
};
use crate::{
    detect::Head,
    error::Fault,
    records::{Record, Source},
    session::{NewCall, Outcome, Piece, Session, Turn},
    step::CompactionKind,
};

const SHAPE: Shape = Shape { items: "messages", system: "system", is_model, item: message, system_text, response };

const KINDS: &[&str] = &["tool_use", "tool_result", "thinking", "server_tool_use", "mcp_tool_use", "redacted_thinking"];

pub(crate) fn looks_like(head: &Head) -> bool {
    let of_body = wire::BASES.iter().any(|base| {
        let chat = head.says_any(&format!("{base}messages[].role"), &["system", "developer", "tool"])
            || head.has(&format!("{base}messages[].tool_calls"));
        head.has(&format!("{base}messages"))
            && !chat
            && (head.has(&format!("{base}system"))
                || head.has(&format!("{base}anthropic_version"))
                || head.says_any(&format!("{base}messages[].content[].type"), KINDS))
    });
    let bare = |base: &str| head.has(&format!("{base}role")) && head.says_any(&format!("{base}content[].type"), KINDS);
    let answered = ["response", "response.body", "[].response", "conversations[].exchanges[].response.body"];
    let answered = answered.iter().any(|base| head.has(&format!("{base}.stop_reason")));
    // A first request can be longer than the head.
    let sent = head.text.contains("api.anthropic.com/v1/messages");
    sent || of_body || answered || bare("[].") || bare("") || bare("response.") || bare("response.body.")
}

pub(crate) fn read(source: &mut Source<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    wire::read(source, session, &SHAPE)
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    role: Option<Text<'a>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

fn is_model(record: Record<'_>) -> bool {
    wire::role(record).is_some_and(|role| &*role == "assistant")
}

fn system_text(record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    for part in pieces(record.parse("a system prompt")?, session, record.place) {
        if let Piece::Text(text) = part {
            session.system(text, record.place)?;
        }
    }
    Ok(())
}

fn message(record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    let message: Message<'_> = record.parse("an Anthropic message")?;
    let role = message.role.ok_or_else(|| record.lacks("a message without `role`"))?;
    let Some(content) = message.content.map(|content| record.part(content)) else { return Ok(()) };
    match &*role {
        "user" => user(content, session),
        "assistant" => model(content, session),
        "system" | "developer" => system_text(content, session),
        role => {
            session.unknown(&format!("role {role}"), record.place.line);
            Ok(())
        }
    }
}

fn user(content: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    for record in content.elements()? {
        let block = block(record)?;
        if is_result(&block) {
            result(block, record, session)?;
        } else if let Some(part) = piece(block, session, record.place) {
            session.human_parts(vec![part], record.place)?;
        }
    }
    Ok(())
}

/// A block, or the text that stands for one.
fn block(record: Record<'_>) -> Result<Block<'_>, Fault> {
    if record.text.starts_with('"') {
        return Ok(Block { text: Some(record.parse("text")?), ..Block::default() });
    }
    record.parse("a block")
}

fn is_result(block: &Block<'_>) -> bool {
    block.kind.ends_with("tool_result")
}

/// A tool's result; those of the provider's own tools hold what no one else reads, and are taken as they are.
pub(crate) fn result(block: Block<'_>, record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    let failed = block.is_error == Some(true);
    let parts = match &*block.kind {
        "tool_result" | "mcp_tool_result" => pieces(block.content, session, record.place),
        _ => vec![Piece::Text(json(record.text))],
    };
    let call = block.tool_use_id.as_deref();
    session.result(Outcome { call, failed, parts, ..Outcome::default() }, record.text, record.place)
}

fn model(content: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    let mut turn = Turn::default();
    for record in content.elements()? {
        let block = block(record)?;
        if is_result(&block) {
            session.turn(std::mem::take(&mut turn), record.place)?;
            result(block, record, session)?;
        } else if &*block.kind == "compaction" {
            session.turn(std::mem::take(&mut turn), record.place)?;
            let text = pieces(block.content, session, record.place).into_iter().find_map(|part| match part {
                Piece::Text(text) => Some(text),
                Piece::Picture(_) => None,
            });
            session.compacted(CompactionKind::Summary { text, kept_from: None }, (None, None), record.place)?;
        } else {
            say(&mut turn, block, record, session)?;
        }
    }
    session.turn(turn, content.place)
}

/// One block of what the model said, and of nothing else.
pub(crate) fn say(
    turn: &mut Turn,
    mut block: Block<'_>,
    record: Record<'_>,
    session: &mut Session<'_>,
) -> Result<(), Fault> {
    match &*block.kind {
        "thinking" => {
            let signature = block.signature.filter(|signature| !signature.is_empty());
            let sealed = signature.is_some();
            // Where the provider keeps the text to itself, the signature is what is sent back.
            let text = block.thinking.filter(|text| !text.is_empty()).or(signature).unwrap_or_default();
            turn.think(text, sealed);
        }
        "redacted_thinking" => turn.think(block.data.unwrap_or_default(), true),
        "tool_use" | "server_tool_use" | "mcp_tool_use" => {
            let name =
                block.name.as_deref().ok_or_else(|| record.lacks(format!("a `{}` without `name`", &*block.kind)))?;
            turn.call(NewCall::new(block.id.as_deref(), name, block.arguments()));
        }
        _ => match block.plain() {
            Some(text) => turn.say(text),
            None => session.unknown(&format!("block {}", &*block.kind), record.place.line),
        },
    }
    Ok(())
}

fn response(record: Record<'_>, session: &mut Session<'_>) -> Result<bool, Fault> {
    let message: Message<'_> = record.parse("a response")?;
    let Some(content) = message.content else { return Ok(false) };
    model(record.part(content), session)?;
    Ok(true)
}
