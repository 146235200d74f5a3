//! Copilot CLI `events.jsonl`: a chain of events, of which half are hooks that repeat the others.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::blocks::{Content, Text, arguments, json, pieces};
use crate::{
    detect::Head,
    error::Fault,
    records::{Record, Source},
    session::{NewCall, Outcome, Piece, Session, Turn},
};

pub(crate) fn looks_like(head: &Head) -> bool {
    head.has("data")
        && head.says_any("type", &["user.message", "assistant.message", "tool.execution_start", "session.start"])
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message<'a> {
    #[serde(borrow, default)]
    content: Content<'a>,
    #[serde(borrow, default)]
    transformed_content: Content<'a>,
    #[serde(borrow)]
    message_id: Option<Text<'a>>,
    #[serde(borrow)]
    reasoning_text: Option<Text<'a>>,
    #[serde(borrow)]
    reasoning_opaque: Option<Text<'a>>,
    #[serde(borrow)]
    tool_requests: Option<Vec<Request<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    #[serde(borrow)]
    tool_call_id: Option<Text<'a>>,
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Complete<'a> {
    #[serde(borrow)]
    tool_call_id: Option<Text<'a>>,
    success: Option<bool>,
    #[serde(borrow)]
    result: Option<ToolResult<'a>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ToolResult<'a> {
    #[serde(borrow, default)]
    content: Content<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Start<'a> {
    #[serde(borrow)]
    session_id: Option<Text<'a>>,
}

/// Groups of events that the model does not see.
const LEFT_OUT: &[&str] =
    &["abort", "assistant.", "hook.", "permission.", "session.", "tool.", "user_input.", "skill."];

pub(crate) fn read(source: &mut Source<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    source.each_record(session, event)
}

fn event(record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    let event: Event<'_> = record.parse("a Copilot event")?;
    let kind = &*event.kind;
    let data =
        || event.data.map(|data| record.part(data)).ok_or_else(|| record.lacks(format!("`{kind}` without `data`")));
    match kind {
        "session.start" if !session.has_begun() => {
            let start: Start<'_> = data()?.parse(kind)?;
            session.begin(start.session_id.as_deref(), record.place)
        }
        "system.message" => {
            let message: Message<'_> = data()?.parse(kind)?;
            for part in pieces(message.content, session, record.place) {
                if let Piece::Text(text) = part {
                    session.system(text, record.place)?;
                }
            }
            Ok(())
        }
        "user.message" => {
            let message: Message<'_> = data()?.parse(kind)?;
            // What was sent, with files that the program put in, where it is not what was typed.
            let sent =
                if message.transformed_content.is_empty() { message.content } else { message.transformed_content };
            let parts = pieces(sent, session, record.place);
            session.human_parts(parts, record.place)
        }
        "assistant.message" => assistant(data()?.parse(kind)?, record, session),
        "tool.execution_complete" => complete(data()?, session),
        kind => {
            match LEFT_OUT.iter().find(|group| kind.starts_with(**group)) {
                Some(group) => session.left_out(group),
                None => session.unknown(kind, record.place.line),
            }
            Ok(())
        }
    }
}

fn assistant(message: Message<'_>, record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    let mut turn = Turn::labelled(message.message_id.as_deref());
    let sealed = message.reasoning_opaque.is_some();
    if let Some(reasoning) = message.reasoning_text.filter(|text| !text.is_empty()).or(message.reasoning_opaque) {
        turn.think(reasoning, sealed);
    }
    for part in pieces(message.content, session, record.place) {
        if let Piece::Text(text) = part {
            turn.say(text);
        }
    }
    for request in message.tool_requests.into_iter().flatten() {
        turn.call(NewCall::new(request.tool_call_id.as_deref(), request.name, arguments(request.arguments)));
    }
    session.turn(turn, record.place)
}

fn complete(record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    let complete: Complete<'_> = record.parse("`tool.execution_complete`")?;
    let call = complete.tool_call_id.ok_or_else(|| record.lacks("`tool.execution_complete` without `toolCallId`"))?;
    let failed = complete.success == Some(false);
    let mut parts = complete.result.map(|result| pieces(result.content, session, record.place)).unwrap_or_default();
    if let (true, Some(error)) = (parts.is_empty(), complete.error) {
        parts.push(Piece::Text(message_of(error)));
    }
    session.result(Outcome { call: Some(&*call), failed, parts, ..Outcome::default() }, record.text, record.place)
}

/// The `message` of an error, or all of it.
fn message_of(error: &RawValue) -> std::sync::Arc<str> {
    #[derive(Deserialize)]
    struct Error<'a> {
        #[serde(borrow)]
        message: Text<'a>,
    }
    match serde_json::from_str::<Error<'_>>(error.get()) {
        Ok(error) => error.message.into(),
        Err(_) => json(error.get()),
    }
}
