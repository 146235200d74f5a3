//! pi: one entry a line, without ids; where it stands is what it is.

use serde::Deserialize;

use super::blocks::{Content, Text, pieces};
use crate::{
    detect::Head,
    error::Fault,
    records::{Record, Source},
    session::{NewCall, Outcome, Piece, Session, Turn},
    step::CompactionKind,
};

pub(crate) fn looks_like(head: &Head) -> bool {
    let message = head.says("message.role", "toolResult") || head.says("message.content[].type", "toolCall");
    head.says("type", "session") && head.has("cwd") || head.says("type", "message") && message
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    message: Option<Message<'a>>,
    #[serde(borrow)]
    summary: Option<Text<'a>>,
    #[serde(rename = "tokensBefore")]
    tokens_before: Option<u64>,
    #[serde(rename = "firstKeptEntryIndex")]
    first_kept: Option<usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message<'a> {
    #[serde(borrow)]
    role: Text<'a>,
    #[serde(borrow, default)]
    content: Content<'a>,
    #[serde(borrow)]
    tool_call_id: Option<Text<'a>>,
    #[serde(borrow)]
    tool_name: Option<Text<'a>>,
    is_error: Option<bool>,
    #[serde(borrow)]
    command: Option<Text<'a>>,
    #[serde(borrow)]
    output: Option<Text<'a>>,
    exit_code: Option<i64>,
    cancelled: Option<bool>,
    #[serde(borrow)]
    full_output_path: Option<Text<'a>>,
}

pub(crate) fn read(source: &mut Source<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    // The number of the first entry of each line's record, since a compaction names records.
    let mut entries = Vec::new();
    source.each_record(session, |record, session| {
        let line: Line<'_> = record.parse("a pi record")?;
        entries.push(session.entries());
        one(line, record, &entries, session)
    })
}

fn one(line: Line<'_>, record: Record<'_>, entries: &[u64], session: &mut Session<'_>) -> Result<(), Fault> {
    let place = record.place;
    match &*line.kind {
        "session" if session.has_begun() => session.left_out("session header"),
        "session" => session.begin(line.id.as_deref(), place)?,
        "message" => {
            let message = line.message.ok_or_else(|| record.lacks("a `message` record without `message`"))?;
            self::message(message, record, session)?;
        }
        "compaction" => {
            let text = line.summary.ok_or_else(|| record.lacks("a `compaction` record without `summary`"))?;
            let kept_from = line.first_kept.and_then(|index| entries.get(index)).copied();
            let kind = CompactionKind::Summary { text: Some(text.into()), kept_from };
            session.compacted(kind, (line.tokens_before, None), place)?;
        }
        "model_change" => session.left_out("model_change"),
        "thinking_level_change" => session.left_out("thinking_level_change"),
        kind => session.unknown(kind, place.line),
    }
    Ok(())
}

fn message(message: Message<'_>, record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    let place = record.place;
    match &*message.role {
        "user" => {
            let parts = pieces(message.content, session, place);
            session.human_parts(parts, place)
        }
        "assistant" => {
            let turn = turn(message.content, session, record)?;
            if turn.is_empty() {
                session.left_out("empty turn");
            }
            session.turn(turn, place)
        }
        "toolResult" => {
            let call = message.tool_call_id.ok_or_else(|| record.lacks("a `toolResult` without `toolCallId`"))?;
            let parts = pieces(message.content, session, place);
            let tool = message.tool_name.as_deref();
            let outcome = Outcome {
                call: Some(&*call),
                tool,
                failed: message.is_error == Some(true),
                parts,
                ..Outcome::default()
            };
            session.result(outcome, record.text, place)
        }
        "bashExecution" => {
            let failed = message.exit_code.is_some_and(|code| code != 0);
            let parts = vec![Piece::Text(shell(&message).into())];
            let outcome = Outcome { tool: Some("bash"), failed, unasked: true, parts, ..Outcome::default() };
            session.result(outcome, record.text, place)
        }
        role => {
            session.unknown(&format!("message {role}"), place.line);
            Ok(())
        }
    }
}

fn turn(content: Content<'_>, session: &mut Session<'_>, record: Record<'_>) -> Result<Turn, Fault> {
    let mut turn = Turn::default();
    let blocks = match content {
        Content::Nothing => Vec::new(),
        Content::Text(text) => {
            turn.say(text);
            Vec::new()
        }
        Content::Blocks(blocks) => blocks,
    };
    for block in blocks {
        match &*block.kind {
            "text" => turn.say(block.text.unwrap_or_default()),
            "thinking" => {
                let sealed = block.signature.is_some_and(|signature| !signature.is_empty());
                turn.think(block.thinking.unwrap_or_default(), sealed);
            }
            "toolCall" => {
                let name = block.name.as_deref().ok_or_else(|| record.lacks("a `toolCall` without `name`"))?;
                turn.call(NewCall::new(block.id.as_deref(), name, block.arguments()));
            }
            kind => session.unknown(&format!("block {kind}"), record.place.line),
        }
    }
    Ok(turn)
}

/// A command that the person ran, as pi tells the model of it.
fn shell(message: &Message<'_>) -> String {
    let command = message.command.as_deref().unwrap_or_default();
    let output = message.output.as_deref().filter(|output| !output.is_empty());
    let mut text = format!("Ran `{command}`\n");
    match output {
        Some(output) => text.push_str(&format!("```\n{output}\n```")),
        None => text.push_str("(no output)"),
    }
    match message.exit_code {
        _ if message.cancelled == Some(true) => text.push_str("\n\n(command cancelled)"),
        Some(code) if code != 0 => text.push_str(&format!("\n\nCommand exited with code {code}")),
        _ => {}
    }
    if let Some(path) = message.full_output_path.as_deref() {
        text.push_str(&format!("\n\n[Output truncated. Full output: {path}]"));
    }
    text
}
