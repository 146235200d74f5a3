//! goose: an exported session. Text, calls and results are blocks of messages; one reply of the model is several messages.

use serde::Deserialize;
use serde_json::value::RawValue;

use keepspan::Role;

use super::{
    blocks::{Content, Text, arguments, pieces},
    walk::{Name, documents, each},
};
use crate::{
    detect::Head,
    error::Fault,
    picture::Picture,
    records::{Record, Source, parse},
    session::{NewCall, Outcome, Piece, Session, Turn},
};

pub(crate) fn looks_like(head: &Head) -> bool {
    head.has("conversation[].role") && head.has("conversation[].content[].type")
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    role: Text<'a>,
    #[serde(borrow)]
    content: Vec<Block<'a>>,
    metadata: Option<Metadata>,
}

/// Who sees the message.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    agent_visible: Option<bool>,
    user_visible: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Block<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    thinking: Option<Text<'a>>,
    #[serde(borrow)]
    signature: Option<Text<'a>>,
    #[serde(borrow)]
    data: Option<Text<'a>>,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    tool_call: Option<Outer<'a>>,
    #[serde(borrow)]
    tool_result: Option<Outer<'a>>,
}

/// A call or result, or why there is none.
#[derive(Deserialize)]
struct Outer<'a> {
    #[serde(borrow)]
    value: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outcomes<'a> {
    #[serde(borrow, default)]
    content: Content<'a>,
    is_error: Option<bool>,
}

pub(crate) fn read(source: &mut Source<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    documents(source, session, |document, session| {
        let (place, mut name) = (document.place()?, Name::default());
        document.object()?;
        while let Some(key) = document.key()? {
            match &*key {
                "id" => name.is(document.value()?),
                "conversation" => {
                    session.begin(name.get(), place)?;
                    each(document, session, message)?;
                }
                _ => document.skip()?,
            }
        }
        Ok(())
    })
}

fn message(record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    let message: Message<'_> = record.parse("a goose message")?;
    let sees = |visible: Option<bool>| visible.unwrap_or(true);
    let (agent, user) = message.metadata.map_or((true, true), |it| (sees(it.agent_visible), sees(it.user_visible)));
    if !agent {
        session.left_out("not visible to the agent");
        return Ok(());
    }
    match &*message.role {
        "assistant" => {
            let turn = turn(message.content, record, session)?;
            session.run(turn, record.place)
        }
        "user" => message.content.into_iter().try_for_each(|block| given(block, user, record, session)),
        role => {
            session.unknown(&format!("message {role}"), record.place.line);
            Ok(())
        }
    }
}

fn turn(blocks: Vec<Block<'_>>, record: Record<'_>, session: &mut Session<'_>) -> Result<Turn, Fault> {
    let mut turn = Turn::default();
    for block in blocks {
        match &*block.kind {
            "text" => turn.say(block.text.unwrap_or_default()),
            "thinking" => {
                let sealed = block.signature.is_some_and(|signature| !signature.is_empty());
                turn.think(block.thinking.unwrap_or_default(), sealed);
            }
            "redactedThinking" => turn.think(block.data.unwrap_or_default(), true),
            "toolRequest" | "frontendToolRequest" => turn.call(call(block, record)?),
            kind => session.unknown(&format!("block {kind}"), record.place.line),
        }
    }
    Ok(turn)
}

fn call(block: Block<'_>, record: Record<'_>) -> Result<NewCall, Fault> {
    let outer = block.tool_call.ok_or_else(|| record.lacks("a `toolRequest` without `toolCall`"))?;
    let id = block.id.as_deref();
    match (outer.value, outer.error) {
        (Some(value), _) => {
            let call: Call<'_> = parse(value.get(), "the `toolCall` of a `toolRequest`", record.place)?;
            Ok(NewCall::new(id, call.name, arguments(call.arguments)))
        }
        // goose could not read what the model asked for.
        (None, Some(error)) => Ok(NewCall::new(id, "unknown", error)),
        (None, None) => Err(record.lacks("a `toolCall` with neither `value` nor `error`")),
    }
}

/// A block of a message in the role of the user; `user`: the person sees it, and so may have said it.
fn given(block: Block<'_>, user: bool, record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    let place = record.place;
    match &*block.kind {
        "text" if user => session.human(block.text.unwrap_or_default(), place),
        "text" => session.notice(block.text.unwrap_or_default(), Role::User, place),
        "image" => session.picture(Picture::from_base64(block.data.as_deref().unwrap_or_default()), place),
        "toolResponse" => {
            let id = block.id.as_deref().ok_or_else(|| record.lacks("a `toolResponse` without `id`"))?;
            let outer = block.tool_result.ok_or_else(|| record.lacks("a `toolResponse` without `toolResult`"))?;
            let (failed, parts) = match (outer.value, outer.error) {
                (Some(value), _) => outcomes(value, record, session)?,
                (None, Some(error)) => (true, vec![Piece::Text(error.into())]),
                (None, None) => return Err(record.lacks("a `toolResult` with neither `value` nor `error`")),
            };
            session.result(Outcome { call: Some(id), failed, parts, ..Outcome::default() }, record.text, place)
        }
        kind => {
            session.unknown(&format!("block {kind}"), place.line);
            Ok(())
        }
    }
}

/// Whether the tool failed, and what it gave: an object of both, or in older exports the list alone.
fn outcomes(value: &RawValue, record: Record<'_>, session: &mut Session<'_>) -> Result<(bool, Vec<Piece>), Fault> {
    let (what, place) = ("the `toolResult` of a `toolResponse`", record.place);
    let outcomes = if value.get().starts_with('[') {
        Outcomes { content: parse(value.get(), what, place)?, is_error: None }
    } else {
        parse(value.get(), what, place)?
    };
    Ok((outcomes.is_error.unwrap_or_default(), pieces(outcomes.content, session, place)))
}
