//! Gemini CLI: text, calls and their results in one message, which is a turn and results again.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    blocks::{Content, Text, arguments, json, pieces},
    gemini,
};
use crate::{
    detect::Head,
    error::Fault,
    records::{Document, Record, Source},
    session::{NewCall, Outcome, Piece, Session, Turn},
};

pub(crate) fn looks_like(head: &Head) -> bool {
    head.has("projectHash") && head.has("sessionId")
        || head.says("messages[].type", "gemini")
        || head.lines && head.says("type", "gemini")
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    session_id: Option<Text<'a>>,
    #[serde(borrow, rename = "$set")]
    set: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Content<'a>,
    #[serde(borrow)]
    thoughts: Option<Vec<Thought<'a>>>,
    #[serde(borrow)]
    tool_calls: Option<Vec<ToolCall<'a>>>,
}

#[derive(Deserialize)]
struct Thought<'a> {
    #[serde(borrow)]
    subject: Option<Text<'a>>,
    #[serde(borrow)]
    description: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct ToolCall<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<Text<'a>>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

/// The messages given, since lines write one again as it grows: by its id, whether its text was given, and which calls.
type Given = HashMap<String, (bool, HashSet<String>)>;

pub(crate) fn read(source: &mut Source<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    let mut given = Given::new();
    if source.head()?.lines {
        return source.each_record(session, |record, session| message(record, &mut given, session));
    }
    let mut document = Document::new(source);
    document.object()?;
    while let Some(key) = document.key()? {
        match key.as_str() {
            "sessionId" if !session.has_begun() => {
                let record = document.value()?;
                let name: Text<'_> = record.parse("`sessionId`")?;
                session.begin(Some(&*name), record.place)?;
            }
            "messages" => {
                document.array()?;
                while document.element()? {
                    message(document.value()?, &mut given, session)?;
                }
            }
            _ => document.skip()?,
        }
    }
    Ok(())
}

fn message(record: Record<'_>, given: &mut Given, session: &mut Session<'_>) -> Result<(), Fault> {
    let message: Message<'_> = record.parse("a Gemini CLI message")?;
    let Some(kind) = message.kind.as_deref() else {
        if message.set.is_some() {
            session.left_out("$set");
            return Ok(());
        }
        let id = message.session_id.ok_or_else(|| record.lacks("a message without `type`"))?;
        return session.begin(Some(&*id), record.place);
    };
    match kind {
        "gemini" => model(message, record, given, session),
        "user" => {
            if let Some(id) = &message.id
                && given.insert(id.to_string(), Default::default()).is_some()
            {
                session.left_out("repeated message");
                return Ok(());
            }
            let parts = pieces(message.content, session, record.place);
            session.human_parts(parts, record.place)
        }
        // Shown to the person alone.
        "info" | "error" | "warning" => {
            session.left_out("info");
            Ok(())
        }
        kind => {
            session.unknown(kind, record.place.line);
            Ok(())
        }
    }
}

/// The text and calls of a message, and the results of its calls; of one that was given before, what is new in it.
fn model(message: Message<'_>, record: Record<'_>, given: &mut Given, session: &mut Session<'_>) -> Result<(), Fault> {
    let id = message.id.as_deref();
    let mut fresh = Default::default();
    let (told, called) = match id {
        Some(id) => given.entry(id.into()).or_default(),
        None => &mut fresh,
    };
    let mut turn = Turn::labelled(id);
    if !*told {
        for thought in message.thoughts.into_iter().flatten() {
            let parts = [thought.subject, thought.description].into_iter().flatten();
            turn.think(parts.map(|part| part.to_string()).collect::<Vec<_>>().join("\n"), false);
        }
        for part in pieces(message.content, session, record.place) {
            if let Piece::Text(text) = part {
                *told |= !text.is_empty();
                turn.say(text);
            }
        }
    }
    let calls: Vec<_> = message.tool_calls.unwrap_or_default();
    let calls: Vec<_> =
        calls.into_iter().filter(|call| call.id.as_ref().is_none_or(|id| called.insert(id.to_string()))).collect();
    for call in &calls {
        turn.call(NewCall::new(call.id.as_deref(), &*call.name, arguments(call.args)));
    }
    if turn.is_empty() {
        session.left_out("repeated message");
    }
    session.turn(turn, record.place)?;
    calls.into_iter().try_for_each(|call| result(call, record, session))
}

#[derive(Deserialize)]
struct Output<'a> {
    #[serde(borrow)]
    output: Text<'a>,
}

fn result(call: ToolCall<'_>, record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    let Some(raw) = call.result else { return Ok(()) };
    let failed = call.status.is_some_and(|status| matches!(&*status, "error" | "cancelled"));
    let mut parts = Vec::new();
    for part in record.part(raw).elements()? {
        let part: gemini::Part<'_> = part.parse("a part of a result")?;
        if let Some(response) = part.function_response.and_then(|response| response.response) {
            let text = match serde_json::from_str::<Output<'_>>(response.get()) {
                Ok(output) => output.output.into(),
                Err(_) => json(response.get()),
            };
            parts.push(Piece::Text(text));
        } else if let Some(text) = part.text {
            parts.push(Piece::Text(text.into()));
        } else if let Some(inline) = part.inline_data {
            parts.push(Piece::Picture(inline.picture()));
        }
    }
    let (id, tool) = (call.id.as_deref(), Some(&*call.name));
    session.result(Outcome { call: id, tool, failed, parts, ..Outcome::default() }, raw.get(), record.place)
}
