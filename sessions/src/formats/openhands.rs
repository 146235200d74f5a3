//! OpenHands: events, one a line; or the log of one model call, which is a document.

use std::{collections::HashMap, sync::Arc};

use serde::Deserialize;
use serde_json::value::RawValue;

use keepspan::Role;

use super::{
    blocks::{Block, Content, Text, arguments, json, pieces},
    openhands_log,
};
use crate::{
    detect::Head,
    error::Fault,
    records::{Document, Record, Source},
    session::{NewCall, Outcome, Piece, Session, Turn},
    step::{CompactionKind, Place},
};

const KINDS: &[&str] =
    &["SystemPromptEvent", "MessageEvent", "ActionEvent", "ObservationEvent", "ConversationStateUpdateEvent"];

pub(crate) fn looks_like(head: &Head) -> bool {
    head.says_any("kind", KINDS) || head.says_any("[].kind", KINDS) || openhands_log::looks_like(head)
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    kind: Text<'a>,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    source: Option<Text<'a>>,
    #[serde(borrow)]
    system_prompt: Option<Block<'a>>,
    #[serde(borrow)]
    dynamic_context: Option<Block<'a>>,
    #[serde(borrow)]
    llm_message: Option<Message<'a>>,
    #[serde(borrow, default)]
    extended_content: Content<'a>,
    #[serde(borrow, default)]
    thought: Content<'a>,
    #[serde(borrow)]
    thinking_blocks: Option<Vec<Block<'a>>>,
    #[serde(borrow)]
    reasoning_content: Option<Text<'a>>,
    #[serde(borrow)]
    tool_name: Option<Text<'a>>,
    #[serde(borrow)]
    tool_call_id: Option<Text<'a>>,
    #[serde(borrow)]
    tool_call: Option<ToolCall<'a>>,
    #[serde(borrow)]
    action: Option<&'a RawValue>,
    #[serde(borrow)]
    llm_response_id: Option<Text<'a>>,
    #[serde(borrow)]
    observation: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<Text<'a>>,
    #[serde(borrow)]
    rejection_reason: Option<Text<'a>>,
    #[serde(borrow)]
    forgotten_event_ids: Option<Vec<Text<'a>>>,
    #[serde(borrow)]
    summary: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    role: Option<Text<'a>>,
    #[serde(borrow, default)]
    content: Content<'a>,
}

#[derive(Deserialize)]
struct ToolCall<'a> {
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    function: Option<Function<'a>>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Observation<'a> {
    #[serde(borrow, default)]
    content: Content<'a>,
    #[serde(borrow, default)]
    output: Content<'a>,
    is_error: Option<bool>,
}

#[derive(Default)]
struct Reader {
    /// The numbers of each event's entries, since a condensation names events.
    entries: HashMap<Arc<str>, (u64, u64)>,
}

pub(crate) fn read(source: &mut Source<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    let head = source.head()?;
    let mut reader = Reader::default();
    if head.has("messages") && !head.has("kind") {
        return openhands_log::read(source, session);
    }
    if !head.text.trim_start().starts_with('[') {
        return source.each_record(session, |record, session| reader.record(record, session));
    }
    let mut document = Document::new(source);
    document.array()?;
    while document.element()? {
        reader.record(document.value()?, session)?;
    }
    Ok(())
}

impl Reader {
    fn record(&mut self, record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
        let event: Event<'_> = record.parse("an OpenHands event")?;
        let (before, id) = (session.entries(), event.id.as_deref().map(Arc::from));
        self.event(event, record, session)?;
        if let Some(id) = id {
            self.entries.insert(id, (before, session.entries()));
        }
        Ok(())
    }

    fn event(&self, event: Event<'_>, record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
        let place = record.place;
        match &*event.kind {
            "SystemPromptEvent" | "SystemPromptUpdateEvent" => {
                for mut block in [event.system_prompt, event.dynamic_context].into_iter().flatten() {
                    session.system(block.plain().unwrap_or_default(), place)?;
                }
                Ok(())
            }
            "MessageEvent" => said(event, record, session),
            "ActionEvent" => act(event, record, session),
            "ObservationEvent" | "UserRejectObservation" | "AgentErrorEvent" => observed(event, record, session),
            "Condensation" | "CondensationEvent" => self.forgot(event, place, session),
            kind @ ("ConversationStateUpdateEvent" | "PauseEvent" | "CondensationRequest" | "TokenEvent") => {
                session.left_out(match kind {
                    "ConversationStateUpdateEvent" => "ConversationStateUpdateEvent",
                    "PauseEvent" => "PauseEvent",
                    "TokenEvent" => "TokenEvent",
                    _ => "CondensationRequest",
                });
                Ok(())
            }
            kind => {
                session.unknown(kind, place.line);
                Ok(())
            }
        }
    }

    fn forgot(&self, event: Event<'_>, place: Place, session: &mut Session<'_>) -> Result<(), Fault> {
        let ids = event.forgotten_event_ids.unwrap_or_default();
        let ranges = ids.iter().filter_map(|id| self.entries.get(&**id));
        let entries = ranges.flat_map(|(first, end)| *first..*end).collect();
        let text = event.summary.filter(|text| !text.is_empty()).map(Into::into);
        session.compacted(CompactionKind::Forgot { entries, text }, (None, None), place)
    }
}

fn said(event: Event<'_>, record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    let place = record.place;
    let message = event.llm_message.ok_or_else(|| record.lacks("a `MessageEvent` without `llm_message`"))?;
    let role = message.role.as_deref().unwrap_or("user");
    let by_person = event.source.as_deref() != Some("environment");
    let parts = pieces(message.content, session, place);
    if role == "assistant" {
        let mut turn = Turn::default();
        think(&mut turn, event.thinking_blocks, event.reasoning_content);
        for part in parts {
            if let Piece::Text(text) = part {
                turn.say(text);
            }
        }
        return session.turn(turn, place);
    }
    for part in parts {
        match part {
            Piece::Text(text) if role == "system" => session.system(text, place)?,
            Piece::Text(text) if !by_person => session.notice(text, Role::User, place)?,
            part => session.human_parts(vec![part], place)?,
        }
    }
    // What the program put in beside it.
    for part in pieces(event.extended_content, session, place) {
        if let Piece::Text(text) = part {
            session.notice(text, Role::User, place)?;
        }
    }
    Ok(())
}

fn think(turn: &mut Turn, blocks: Option<Vec<Block<'_>>>, reasoning: Option<Text<'_>>) {
    let blocks = blocks.unwrap_or_default();
    if blocks.is_empty() {
        turn.think(reasoning.unwrap_or_default(), false);
    }
    for block in blocks {
        let sealed = block.signature.is_some() || block.data.is_some();
        turn.think(block.thinking.or(block.data).unwrap_or_default(), sealed);
    }
}

/// A call; the calls of one response are one turn.
fn act(event: Event<'_>, record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    let name = event.tool_name.ok_or_else(|| record.lacks("an `ActionEvent` without `tool_name`"))?;
    let mut turn = Turn::labelled(event.llm_response_id.as_deref());
    think(&mut turn, event.thinking_blocks, event.reasoning_content);
    for part in pieces(event.thought, session, record.place) {
        if let Piece::Text(text) = part {
            turn.say(text);
        }
    }
    let given = event.tool_call.and_then(|call| call.arguments.or(call.function.and_then(|call| call.arguments)));
    turn.call(NewCall::new(event.tool_call_id.as_deref(), name, arguments(given.or(event.action))));
    session.turn(turn, record.place)
}

fn observed(event: Event<'_>, record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    let mut failed = &*event.kind != "ObservationEvent";
    let mut parts = Vec::new();
    if let Some(observation) = event.observation {
        let seen: Observation<'_> = record.part(observation).parse("an observation")?;
        failed |= seen.is_error == Some(true);
        parts = pieces(if seen.content.is_empty() { seen.output } else { seen.content }, session, record.place);
        if parts.is_empty() {
            parts.push(Piece::Text(json(observation.get())));
        }
    }
    parts.extend(event.error.or(event.rejection_reason).map(|text| Piece::Text(text.into())));
    let (call, tool) = (event.tool_call_id.as_deref(), event.tool_name.as_deref());
    session.result(Outcome { call, tool, failed, parts, ..Outcome::default() }, record.text, record.place)
}
