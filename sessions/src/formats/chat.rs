//! OpenAI Chat Completions: messages with `tool_calls`, and results under role `tool`.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    blocks::{Content, Text, arguments, pieces},
    wire::{self, Shape},
};
use crate::{
    detect::Head,
    error::Fault,
    records::{Record, Source},
    session::{NewCall, Outcome, Piece, Session, Turn},
};

const SHAPE: Shape = Shape { items: "messages", system: "system", is_model, item: message_of, system_text, response };

pub(crate) fn looks_like(head: &Head) -> bool {
    wire::BASES
        .iter()
        .any(|base| head.has(&format!("{base}messages[].role")) || head.has(&format!("{base}choices[].message.role")))
        || head.has("[].role") && head.has("[].content")
        || head.lines && head.has("role") && head.has("content")
}

pub(crate) fn read(source: &mut Source<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    wire::read(source, session, &SHAPE)
}

/// A message, with the fields that vendors added.
#[derive(Deserialize)]
pub(crate) struct Message<'a> {
    #[serde(borrow)]
    pub(crate) role: Text<'a>,
    #[serde(borrow, default)]
    pub(crate) content: Content<'a>,
    #[serde(borrow, alias = "reasoning")]
    reasoning_content: Option<Text<'a>>,
    #[serde(borrow)]
    refusal: Option<Text<'a>>,
    #[serde(borrow)]
    tool_calls: Option<Vec<ToolCall<'a>>>,
    #[serde(borrow)]
    function_call: Option<Function<'a>>,
    #[serde(borrow)]
    pub(crate) tool_call_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) name: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct ToolCall<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow, alias = "custom")]
    function: Function<'a>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow, alias = "input")]
    arguments: Option<&'a RawValue>,
}

fn is_model(record: Record<'_>) -> bool {
    wire::role(record).is_some_and(|role| &*role == "assistant")
}

fn message_of(record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    message(record.parse("a chat message")?, record, session, false)
}

fn system_text(record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    let content: Content<'_> = record.parse("a system prompt")?;
    system(content, record, session)
}

fn system(content: Content<'_>, record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    for piece in pieces(content, session, record.place) {
        if let Piece::Text(text) = piece {
            session.system(text, record.place)?;
        }
    }
    Ok(())
}

/// One message; `failed`: its result is an error by a flag that the format has elsewhere.
pub(crate) fn message(
    message: Message<'_>,
    record: Record<'_>,
    session: &mut Session<'_>,
    failed: bool,
) -> Result<(), Fault> {
    let place = record.place;
    match &*message.role {
        "system" | "developer" => system(message.content, record, session),
        "user" => {
            let parts = pieces(message.content, session, place);
            session.human_parts(parts, place)
        }
        "assistant" => {
            let turn = turn(message, record, session)?;
            session.turn(turn, place)
        }
        "tool" | "function" => {
            let parts = pieces(message.content, session, place);
            let (call, tool) = (message.tool_call_id.as_deref(), message.name.as_deref());
            session.result(Outcome { call, tool, failed, parts, ..Outcome::default() }, record.text, place)
        }
        role => {
            session.unknown(&format!("role {role}"), place.line);
            Ok(())
        }
    }
}

fn turn(message: Message<'_>, record: Record<'_>, session: &mut Session<'_>) -> Result<Turn, Fault> {
    let mut turn = Turn::default();
    if let Some(reasoning) = message.reasoning_content {
        turn.think(reasoning, false);
    }
    for piece in pieces(message.content, session, record.place) {
        match piece {
            Piece::Text(text) => turn.say(text),
            Piece::Picture(_) => session.unknown("picture of the model", record.place.line),
        }
    }
    if let Some(refusal) = message.refusal {
        turn.say(refusal);
    }
    for call in message.tool_calls.into_iter().flatten() {
        let Function { name, arguments: given } = call.function;
        turn.call(NewCall::new(call.id.as_deref(), name, arguments(given)));
    }
    if let Some(Function { name, arguments: given }) = message.function_call {
        turn.call(NewCall::new(None, name, arguments(given)));
    }
    Ok(turn)
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow, default)]
    choices: Vec<Choice<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    message: &'a RawValue,
}

fn response(record: Record<'_>, session: &mut Session<'_>) -> Result<bool, Fault> {
    let response: Response<'_> = record.parse("a chat response")?;
    let Some(choice) = response.choices.first() else { return Ok(false) };
    message_of(record.part(choice.message), session)?;
    Ok(true)
}
