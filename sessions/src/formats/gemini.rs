//! Gemini `generateContent`: contents of parts. Calls may have no ids until the client invents them.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    blocks::{Text, json},
    wire::{self, Shape},
};
use crate::{
    detect::Head,
    error::Fault,
    picture::Picture,
    records::{Record, Source},
    session::{NewCall, Outcome, Piece, Session, Turn},
};

const SHAPE: Shape =
    Shape { items: "contents", system: "systemInstruction", is_model, item: content, system_text, response };

pub(crate) fn looks_like(head: &Head) -> bool {
    wire::BASES.iter().any(|base| {
        head.has(&format!("{base}contents[].parts"))
            || head.has(&format!("{base}contents.parts"))
            || head.has(&format!("{base}candidates[].content.parts"))
    }) || head.has("[].parts") && head.has("[].role")
        || head.lines && head.has("parts") && head.has("role")
}

pub(crate) fn read(source: &mut Source<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    wire::read(source, session, &SHAPE)
}

#[derive(Deserialize)]
pub(crate) struct Contents<'a> {
    #[serde(borrow)]
    role: Option<Text<'a>>,
    #[serde(borrow)]
    parts: Option<Vec<Part<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Part<'a> {
    #[serde(borrow)]
    pub(crate) text: Option<Text<'a>>,
    thought: Option<bool>,
    #[serde(borrow, alias = "thought_signature")]
    thought_signature: Option<Text<'a>>,
    #[serde(borrow, alias = "function_call")]
    function_call: Option<Call<'a>>,
    #[serde(borrow, alias = "function_response")]
    pub(crate) function_response: Option<FunctionResponse<'a>>,
    #[serde(borrow, alias = "inline_data")]
    pub(crate) inline_data: Option<Inline<'a>>,
    #[serde(borrow, alias = "file_data")]
    file_data: Option<&'a RawValue>,
    #[serde(borrow, alias = "executable_code")]
    executable_code: Option<&'a RawValue>,
    #[serde(borrow, alias = "code_execution_result")]
    code_execution_result: Option<CodeResult<'a>>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(crate) struct FunctionResponse<'a> {
    #[serde(borrow)]
    pub(crate) id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) name: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) response: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Inline<'a> {
    #[serde(borrow, alias = "mime_type")]
    mime_type: Option<Text<'a>>,
    #[serde(borrow)]
    data: Text<'a>,
}

impl Inline<'_> {
    pub(crate) fn picture(&self) -> Picture {
        match &self.mime_type {
            Some(kind) if !kind.starts_with("image/") => {
                Picture::Missing { what: format!("{} of {} characters", &**kind, self.data.len()) }
            }
            _ => Picture::from_base64(&self.data),
        }
    }
}

#[derive(Deserialize)]
struct CodeResult<'a> {
    #[serde(borrow)]
    outcome: Option<Text<'a>>,
    #[serde(borrow)]
    output: Option<Text<'a>>,
}

fn is_model(record: Record<'_>) -> bool {
    wire::role(record).is_some_and(|role| &*role == "model")
}

fn system_text(record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    if record.text.starts_with('"') {
        let text: Text<'_> = record.parse("a system instruction")?;
        return session.system(text, record.place);
    }
    let contents: Contents<'_> = record.parse("a system instruction")?;
    contents
        .parts
        .into_iter()
        .flatten()
        .filter_map(|part| part.text)
        .try_for_each(|text| session.system(text, record.place))
}

fn content(record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    if record.text.starts_with('"') {
        let text: Text<'_> = record.parse("a content")?;
        return session.human(text, record.place);
    }
    let contents: Contents<'_> = record.parse("a Gemini content")?;
    let is_model = contents.role.as_ref().is_some_and(|role| &**role == "model");
    let mut turn = Turn::default();
    for part in contents.parts.into_iter().flatten() {
        if let Some(response) = part.function_response {
            session.turn(std::mem::take(&mut turn), record.place)?;
            answer(response, record, session)?;
        } else if let Some(result) = part.code_execution_result {
            session.turn(std::mem::take(&mut turn), record.place)?;
            let failed = result.outcome.is_some_and(|outcome| &*outcome != "OUTCOME_OK");
            let parts = result.output.map(|text| Piece::Text(text.into())).into_iter().collect();
            let outcome = Outcome { tool: Some("code_execution"), failed, parts, ..Outcome::default() };
            session.result(outcome, record.text, record.place)?;
        } else if is_model {
            say(&mut turn, part, record, session);
        } else {
            given(part, record, session)?;
        }
    }
    session.turn(turn, record.place)
}

fn say(turn: &mut Turn, part: Part<'_>, record: Record<'_>, session: &mut Session<'_>) {
    let sealed = part.thought_signature.is_some_and(|signature| !signature.is_empty());
    if let Some(call) = part.function_call {
        turn.call(NewCall::new(call.id.as_deref(), call.name, super::blocks::arguments(call.args)));
    } else if let Some(code) = part.executable_code {
        turn.call(NewCall::new(None, "code_execution", json(code.get())));
    } else if let Some(text) = part.text {
        match part.thought {
            Some(true) => turn.think(text, sealed),
            _ => turn.say(text),
        }
    } else {
        session.unknown("part of the model", record.place.line);
    }
    if sealed {
        turn.seal();
    }
}

/// What a person gave.
fn given(part: Part<'_>, record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    if let Some(text) = part.text {
        session.human(text, record.place)
    } else if let Some(inline) = part.inline_data {
        session.picture(inline.picture(), record.place)
    } else if let Some(file) = part.file_data {
        session.picture(Picture::Missing { what: file.get().chars().take(200).collect() }, record.place)
    } else {
        session.unknown("part of the user", record.place.line);
        Ok(())
    }
}

fn answer(response: FunctionResponse<'_>, record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    let failed = response.response.is_some_and(is_error);
    let parts = response.response.map(|text| Piece::Text(json(text.get()))).into_iter().collect();
    let (call, tool) = (response.id.as_deref(), response.name.as_deref());
    let outcome = Outcome { call, tool, failed, by_name: true, parts, ..Outcome::default() };
    session.result(outcome, record.text, record.place)
}

/// Whether a function's response says `error`.
pub(crate) fn is_error(response: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Error<'a> {
        #[serde(borrow)]
        error: Option<&'a RawValue>,
    }
    serde_json::from_str::<Error<'_>>(response.get()).is_ok_and(|response| response.error.is_some())
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow)]
    candidates: Option<Vec<Candidate<'a>>>,
}

#[derive(Deserialize)]
struct Candidate<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

fn response(record: Record<'_>, session: &mut Session<'_>) -> Result<bool, Fault> {
    let response: Response<'_> = record.parse("a Gemini response")?;
    let Some(said) = response.candidates.iter().flatten().next().and_then(|candidate| candidate.content) else {
        return Ok(false);
    };
    content(record.part(said), session)?;
    Ok(true)
}
