//! Codex CLI: enveloped items of the Responses API. Events repeat them and are left out.

use std::sync::Arc;

use keepspan::Role;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    blocks::Text,
    responses::{self, Item},
};
use crate::{
    detect::Head,
    error::Fault,
    records::{Record, Source},
    session::Session,
    step::CompactionKind,
};

pub(crate) fn looks_like(head: &Head) -> bool {
    head.says_any("type", &["session_meta", "response_item"]) && head.has("payload")
        || head.lines && head.has("id") && head.has("instructions") && head.has("git")
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
    /// Of the oldest files, whose first line is the meta object itself.
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    instructions: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Meta<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    base_instructions: Option<Instructions<'a>>,
    #[serde(borrow)]
    instructions: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Instructions<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Compacted<'a> {
    #[serde(borrow)]
    message: Option<Text<'a>>,
    #[serde(borrow)]
    replacement_history: Option<&'a RawValue>,
}

/// Texts by which the program, and no person, speaks under role user.
const NOTICES: &[&str] = &[
    "<environment_context>",
    "# AGENTS.md instructions",
    "<user_instructions>",
    "<user_shell_command>",
    "<turn_aborted>",
    "<subagent_notification>",
    "<no retained transcript",
    "<INSTRUCTIONS>",
    "<skill>",
];

pub(crate) fn read(source: &mut Source<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    let mut instructions: Option<Arc<str>> = None;
    source.each_record(session, |record, session| {
        let line: Line<'_> = record.parse("a Codex record")?;
        one(line, record, &mut instructions, session)
    })
}

fn one(
    line: Line<'_>,
    record: Record<'_>,
    instructions: &mut Option<Arc<str>>,
    session: &mut Session<'_>,
) -> Result<(), Fault> {
    let payload = || line.payload.map(|payload| record.part(payload)).ok_or_else(|| record.lacks("no `payload`"));
    match line.kind.as_deref() {
        Some("session_meta") => {
            let meta: Meta<'_> = payload()?.parse("`session_meta`")?;
            let text = meta.base_instructions.and_then(|base| base.text).or(meta.instructions);
            begin(meta.id.as_deref(), text, record, instructions, session)
        }
        Some("response_item") => item(payload()?, session),
        Some("compacted") => compacted(payload()?, session),
        Some("event_msg") => left_out("event_msg", session),
        Some("turn_context") => left_out("turn_context", session),
        Some("world_state") => left_out("world_state", session),
        Some("inter_agent_communication_metadata") => left_out("inter_agent_communication_metadata", session),
        // The oldest files have no envelopes.
        None if line.id.is_some() => begin(line.id.as_deref(), line.instructions, record, instructions, session),
        None if record.text.contains("\"record_type\"") => left_out("state", session),
        Some(kind) if responses::KINDS.contains(&kind) || kind == "message" => item(record, session),
        kind => {
            session.unknown(kind.unwrap_or("no type"), record.place.line);
            Ok(())
        }
    }
}

fn left_out(kind: &'static str, session: &mut Session<'_>) -> Result<(), Fault> {
    session.left_out(kind);
    Ok(())
}

/// A header; a session that is resumed or forked has more than one, and its instructions are told once.
fn begin(
    id: Option<&str>,
    text: Option<Text<'_>>,
    record: Record<'_>,
    instructions: &mut Option<Arc<str>>,
    session: &mut Session<'_>,
) -> Result<(), Fault> {
    if session.has_begun() {
        session.left_out("session_meta");
    } else {
        session.begin(id, record.place)?;
    }
    let text: Option<Arc<str>> = text.map(Arc::from);
    match text {
        Some(text) if instructions.as_ref() != Some(&text) => {
            *instructions = Some(text.clone());
            session.system(text, record.place)
        }
        _ => Ok(()),
    }
}

fn item(record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    let item: Item<'_> = record.parse("a `response_item`")?;
    match item.kind() {
        "ghost_snapshot" => left_out("ghost_snapshot", session),
        // What other agents told this one.
        "agent_message" => {
            item.texts(session, record).into_iter().try_for_each(|text| session.notice(text, Role::User, record.place))
        }
        "message" if item.is_user() => {
            for part in item.parts(session, record) {
                match part {
                    crate::session::Piece::Text(text) if NOTICES.iter().any(|start| text.starts_with(start)) => {
                        session.notice(text, Role::User, record.place)?;
                    }
                    part => session.human_parts(vec![part], record.place)?,
                }
            }
            Ok(())
        }
        _ => responses::item(item, record, session),
    }
}

fn compacted(record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    let compacted: Compacted<'_> = record.parse("`compacted`")?;
    let summary = compacted.message.filter(|text| !text.is_empty()).map(Arc::from);
    match compacted.replacement_history {
        Some(history) => responses::replaced(record.part(history).elements()?, summary, session, record),
        None => {
            let kind = CompactionKind::Summary { text: summary, kept_from: None };
            session.compacted(kind, (None, None), record.place)
        }
    }
}
