//! The wire log of Kimi CLI: what was put into the context, event by event.

use serde::Deserialize;
use serde_json::value::RawValue;

use keepspan::Role;

use super::blocks::{Content, Text, arguments, pieces};
use crate::{
    detect::Head,
    error::Fault,
    records::{Record, Source},
    session::{NewCall, Outcome, Piece, Session, Turn},
    step::CompactionKind,
};

pub(crate) fn looks_like(head: &Head) -> bool {
    head.says_any("type", &["context.append_message", "context.append_loop_event", "turn.prompt"])
        || head.says("type", "metadata") && head.has("protocol_version")
}

/// Records that repeat others, or that the model does not see.
const LEFT_OUT: &[&str] = &[
    "config.update",
    "full_compaction.begin",
    "full_compaction.complete",
    "llm.request",
    "llm.tools_snapshot",
    "metadata",
    "permission.record_approval_result",
    "plan_mode.enter",
    "plan_mode.exit",
    "tools.set_active_tools",
    "turn.prompt",
    "usage.record",
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    #[serde(borrow)]
    system_prompt: Option<Text<'a>>,
    #[serde(borrow)]
    message: Option<Message<'a>>,
    #[serde(borrow)]
    event: Option<Event<'a>>,
    #[serde(borrow)]
    summary: Option<Text<'a>>,
    #[serde(borrow)]
    context_summary: Option<Text<'a>>,
    tokens_before: Option<u64>,
    tokens_after: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message<'a> {
    #[serde(borrow)]
    role: Text<'a>,
    #[serde(borrow, default)]
    content: Content<'a>,
    #[serde(borrow)]
    tool_calls: Option<Vec<Call<'a>>>,
    #[serde(borrow)]
    tool_call_id: Option<Text<'a>>,
    #[serde(borrow)]
    origin: Option<Origin<'a>>,
}

#[derive(Deserialize)]
struct Origin<'a> {
    #[serde(borrow)]
    kind: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow, alias = "args")]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    #[serde(borrow)]
    step_uuid: Option<Text<'a>>,
    #[serde(borrow)]
    part: Option<Part<'a>>,
    #[serde(borrow)]
    tool_call_id: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<ToolResult<'a>>,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow)]
    think: Option<Text<'a>>,
    #[serde(borrow)]
    encrypted: Option<Text<'a>>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolResult<'a> {
    #[serde(borrow, default)]
    output: Content<'a>,
    is_error: Option<bool>,
}

pub(crate) fn read(source: &mut Source<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    source.each_record(session, |record, session| {
        let line: Line<'_> = record.parse("a Kimi record")?;
        one(line, record, session)
    })
}

fn one(line: Line<'_>, record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    match &*line.kind {
        "config.update" if line.system_prompt.is_some() => {
            session.system(line.system_prompt.unwrap_or_default(), record.place)
        }
        "context.append_message" => {
            let message = line.message.ok_or_else(|| record.lacks("`context.append_message` without `message`"))?;
            self::message(message, record, session)
        }
        "context.append_loop_event" => {
            let event = line.event.ok_or_else(|| record.lacks("`context.append_loop_event` without `event`"))?;
            self::event(event, record, session)
        }
        "context.apply_compaction" => {
            let text = line.context_summary.or(line.summary).map(Into::into);
            let saved = line.tokens_before.zip(line.tokens_after).map(|(before, after)| before.saturating_sub(after));
            let kind = CompactionKind::Summary { text, kept_from: None };
            session.compacted(kind, (line.tokens_before, saved), record.place)
        }
        kind => {
            match LEFT_OUT.iter().find(|known| **known == kind) {
                Some(known) => session.left_out(known),
                None => session.unknown(kind, record.place.line),
            }
            Ok(())
        }
    }
}

fn message(message: Message<'_>, record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    let place = record.place;
    let parts = pieces(message.content, session, place);
    match &*message.role {
        "user" => {
            let typed = message.origin.and_then(|origin| origin.kind).is_none_or(|kind| &*kind == "user");
            for part in parts {
                match part {
                    Piece::Text(text) if !typed => session.notice(text, Role::User, place)?,
                    part => session.human_parts(vec![part], place)?,
                }
            }
            Ok(())
        }
        "assistant" => {
            let mut turn = Turn::default();
            for part in parts {
                if let Piece::Text(text) = part {
                    turn.say(text);
                }
            }
            for call in message.tool_calls.into_iter().flatten() {
                turn.call(NewCall::new(call.id.as_deref(), call.name, arguments(call.arguments)));
            }
            session.turn(turn, place)
        }
        "tool" => {
            let call = message.tool_call_id.as_deref();
            session.result(Outcome { call, parts, ..Outcome::default() }, record.text, place)
        }
        "system" => parts.into_iter().try_for_each(|part| match part {
            Piece::Text(text) => session.system(text, place),
            Piece::Picture(_) => Ok(()),
        }),
        role => {
            session.unknown(&format!("role {role}"), place.line);
            Ok(())
        }
    }
}

/// An event of the model's step: all of a step are one turn.
fn event(event: Event<'_>, record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    let place = record.place;
    let mut turn = Turn::labelled(event.step_uuid.as_deref());
    match &*event.kind {
        "content.part" => {
            let part = event.part.ok_or_else(|| record.lacks("`content.part` without `part`"))?;
            match &*part.kind {
                "think" => turn.think(part.think.unwrap_or_default(), part.encrypted.is_some()),
                "text" => turn.say(part.text.unwrap_or_default()),
                kind => session.unknown(&format!("part {kind}"), place.line),
            }
            session.turn(turn, place)
        }
        "tool.call" => {
            let name = event.name.ok_or_else(|| record.lacks("`tool.call` without `name`"))?;
            turn.call(NewCall::new(event.tool_call_id.as_deref(), name, arguments(event.args)));
            session.turn(turn, place)
        }
        "tool.result" => {
            let call = event.tool_call_id.ok_or_else(|| record.lacks("`tool.result` without `toolCallId`"))?;
            let result = event.result.ok_or_else(|| record.lacks("`tool.result` without `result`"))?;
            let failed = result.is_error == Some(true);
            let parts = pieces(result.output, session, place);
            session.result(Outcome { call: Some(&*call), failed, parts, ..Outcome::default() }, record.text, place)
        }
        "step.begin" => left_out("step.begin", session),
        "step.end" => left_out("step.end", session),
        kind => {
            session.unknown(&format!("event {kind}"), place.line);
            Ok(())
        }
    }
}

fn left_out(kind: &'static str, session: &mut Session<'_>) -> Result<(), Fault> {
    session.left_out(kind);
    Ok(())
}
