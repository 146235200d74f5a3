//! OpenAI Chat Completions: messages with `tool_calls`, and results under role `tool`.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    blocks::{Block, Content, Text, arguments, pieces},
    wire::{self, Shape},
};
use crate::{
    detect::Head,
    error::Fault,
    records::{Record, Source, parse},
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
    #[serde(borrow)]
    reasoning_content: Option<Text<'a>>,
    /// What some vendors call it, beside the other or in its place; text, or something of their own.
    #[serde(borrow)]
    reasoning: Option<&'a RawValue>,
    /// The same reasoning, signed.
    #[serde(borrow)]
    thinking_blocks: Option<Vec<Block<'a>>>,
    #[serde(borrow)]
    refusal: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) tool_calls: Option<Vec<ToolCall<'a>>>,
    #[serde(borrow)]
    function_call: Option<Function<'a>>,
    #[serde(borrow)]
    pub(crate) tool_call_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) name: Option<Text<'a>>,
}

/// A call: `function` holds the tool and the arguments, or is the tool, or both stand in the call itself.
#[derive(Deserialize)]
pub(crate) struct ToolCall<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    function: Option<&'a RawValue>,
    #[serde(borrow)]
    custom: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow, alias = "input")]
    arguments: Option<&'a RawValue>,
}

impl Message<'_> {
    /// Whether it makes calls.
    pub(crate) fn calls(&self) -> bool {
        self.tool_calls.as_ref().is_some_and(|calls| !calls.is_empty())
    }
}

impl ToolCall<'_> {
    fn call(self, record: Record<'_>) -> Result<NewCall, Fault> {
        let function = match (self.function.or(self.custom), self.name) {
            (None, Some(name)) => Function { name, arguments: self.arguments },
            (None, None) => return Err(record.lacks("a call without a name")),
            (Some(function), _) => match serde_json::from_str(function.get()) {
                Ok(name) => Function { name, arguments: self.arguments },
                Err(_) => parse(function.get(), "the `function` of a call", record.place)?,
            },
        };
        Ok(NewCall::new(self.id.as_deref(), function.name, arguments(function.arguments)))
    }
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
            if turn.is_empty() {
                session.left_out("empty turn");
            }
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
    let reasoning = message.reasoning.and_then(|reasoning| serde_json::from_str(reasoning.get()).ok());
    match (message.thinking_blocks.filter(|blocks| !blocks.is_empty()), message.reasoning_content.or(reasoning)) {
        (Some(blocks), _) => blocks.into_iter().for_each(|block| say(block, &mut turn, session, record)),
        (None, Some(reasoning)) => turn.think(reasoning, false),
        (None, None) => {}
    }
    match message.content {
        Content::Nothing => {}
        Content::Text(text) => turn.say(text),
        Content::Blocks(blocks) => blocks.into_iter().for_each(|block| say(block, &mut turn, session, record)),
    }
    if let Some(refusal) = message.refusal {
        turn.say(refusal);
    }
    for call in message.tool_calls.into_iter().flatten() {
        turn.call(call.call(record)?);
    }
    if let Some(Function { name, arguments: given }) = message.function_call {
        turn.call(NewCall::new(None, name, arguments(given)));
    }
    Ok(turn)
}

/// A block of what the model says.
fn say(mut block: Block<'_>, turn: &mut Turn, session: &mut Session<'_>, record: Record<'_>) {
    if let Some(text) = block.plain() {
        turn.say(text);
    } else if let Some(thinking) = block.thinking {
        let sealed = block.signature.is_some_and(|signature| !signature.is_empty());
        turn.think(thinking, sealed);
    } else if let ("redacted_thinking", Some(data)) = (&*block.kind, block.data) {
        turn.think(data, true);
    } else {
        session.unknown(&format!("block {}", &*block.kind), record.place.line);
    }
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow)]
    choices: Option<Vec<Choice<'a>>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    message: &'a RawValue,
}

fn response(record: Record<'_>, session: &mut Session<'_>) -> Result<bool, Fault> {
    let response: Response<'_> = record.parse("a chat response")?;
    let Some(choice) = response.choices.iter().flatten().next() else { return Ok(false) };
    message_of(record.part(choice.message), session)?;
    Ok(true)
}
