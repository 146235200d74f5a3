//! Messages of the OpenAI shape, as the agents and benchmarks that keep their sessions so spell it.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::blocks::{Content, Text, arguments, pieces};
use crate::{
    error::Fault,
    records::Record,
    session::{NewCall, Outcome, Piece, Session, Turn},
    step::Place,
};

#[derive(Deserialize)]
pub(crate) struct Message<'a> {
    #[serde(borrow)]
    pub(crate) role: Text<'a>,
    #[serde(borrow, default)]
    pub(crate) content: Content<'a>,
    #[serde(borrow)]
    pub(crate) tool_calls: Option<Vec<ToolCall<'a>>>,
    #[serde(borrow)]
    pub(crate) tool_call_id: Option<Text<'a>>,
    /// Of a result, the tool.
    #[serde(borrow)]
    pub(crate) name: Option<Text<'a>>,
    /// Plain reasoning, which is not signed.
    #[serde(borrow)]
    pub(crate) reasoning_content: Option<Text<'a>>,
}

/// A call: `function` is an object with name and arguments, or the name; or both stand in the call itself.
#[derive(Deserialize)]
pub(crate) struct ToolCall<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    function: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

impl ToolCall<'_> {
    fn call(&self, record: Record<'_>) -> Result<NewCall, Fault> {
        let id = self.id.as_deref();
        if let Some(name) = self.name.as_deref() {
            return Ok(NewCall::new(id, name, arguments(self.arguments)));
        }
        let function = self.function.ok_or_else(|| record.lacks("a call without a name"))?;
        if let Ok(name) = serde_json::from_str::<Text<'_>>(function.get()) {
            return Ok(NewCall::new(id, &*name.0, arguments(self.arguments)));
        }
        let function: Function<'_> = crate::records::parse(function.get(), "the `function` of a call", record.place)?;
        Ok(NewCall::new(id, &*function.name.0, arguments(function.arguments)))
    }
}

impl Message<'_> {
    /// Whether it makes calls.
    pub(crate) fn calls(&self) -> bool {
        self.tool_calls.as_ref().is_some_and(|calls| !calls.is_empty())
    }

    /// The model's turn: reasoning, text and calls.
    pub(crate) fn model(self, session: &mut Session<'_>, record: Record<'_>) -> Result<(), Fault> {
        let mut turn = Turn::default();
        if let Some(reasoning) = self.reasoning_content {
            turn.think(reasoning, false);
        }
        say(self.content, &mut turn, session, record.place);
        for call in self.tool_calls.iter().flatten() {
            turn.call(call.call(record)?);
        }
        if turn.is_empty() {
            session.left_out("empty turn");
        }
        session.turn(turn, record.place)
    }

    /// The result of the call `call`, or of `tool_call_id` where that is none.
    pub(crate) fn result(
        self,
        call: Option<&str>,
        failed: bool,
        session: &mut Session<'_>,
        record: Record<'_>,
    ) -> Result<(), Fault> {
        let parts = pieces(self.content, session, record.place);
        let (call, tool) = (call.or(self.tool_call_id.as_deref()), self.name.as_deref());
        session.result(Outcome { call, tool, failed, parts, ..Outcome::default() }, record.text, record.place)
    }
}

/// What the model says, a block a part.
fn say(content: Content<'_>, turn: &mut Turn, session: &mut Session<'_>, place: Place) {
    let blocks = match content {
        Content::Nothing => return,
        Content::Text(text) => return turn.say(text),
        Content::Blocks(blocks) => blocks,
    };
    for mut block in blocks {
        if let Some(text) = block.plain() {
            turn.say(text);
        } else if let Some(thinking) = block.thinking.take() {
            let sealed = block.signature.is_some_and(|signature| !signature.is_empty());
            turn.think(thinking, sealed);
        } else {
            session.unknown(&format!("block {}", &*block.kind), place.line);
        }
    }
}

/// What a person said, a block a span.
pub(crate) fn human(content: Content<'_>, session: &mut Session<'_>, place: Place) -> Result<(), Fault> {
    for piece in pieces(content, session, place) {
        match piece {
            Piece::Text(text) => session.human(text, place)?,
            Piece::Picture(picture) => session.picture(picture, place)?,
        }
    }
    Ok(())
}

/// A system prompt, of a block or more.
pub(crate) fn system(content: Content<'_>, session: &mut Session<'_>, place: Place) -> Result<(), Fault> {
    for piece in pieces(content, session, place) {
        match piece {
            Piece::Text(text) => session.system(text, place)?,
            Piece::Picture(_) => session.unknown("picture in a system prompt", place.line),
        }
    }
    Ok(())
}
