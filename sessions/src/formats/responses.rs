//! OpenAI Responses: flat items. Codex records the same items.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    blocks::{Content, Text, arguments, json, pieces},
    wire::{self, Shape},
};
use crate::{
    detect::Head,
    error::Fault,
    picture::Picture,
    records::{Record, Source},
    session::{NewCall, Outcome, Piece, Session, Turn},
    step::CompactionKind,
};

const SHAPE: Shape =
    Shape { items: "input", system: "instructions", is_model, item: any_item, system_text: prompt, response };

pub(crate) const KINDS: &[&str] =
    &["function_call", "function_call_output", "reasoning", "custom_tool_call", "web_search_call", "mcp_call"];

pub(crate) fn looks_like(head: &Head) -> bool {
    wire::BASES.iter().any(|base| {
        head.has(&format!("{base}input[].role"))
            || head.says_any(&format!("{base}input[].type"), KINDS)
            || head.says_any(&format!("{base}output[].type"), KINDS)
            || head.has(&format!("{base}output[].content[].annotations"))
            || head.has(&format!("{base}input")) && head.has(&format!("{base}model"))
    }) || head.says_any("[].type", KINDS)
        || head.lines && head.says_any("type", KINDS)
}

pub(crate) fn read(source: &mut Source<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    wire::read(source, session, &SHAPE)
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
pub(crate) struct Item<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    role: Option<Text<'a>>,
    #[serde(borrow)]
    content: Content<'a>,
    #[serde(borrow)]
    summary: Content<'a>,
    #[serde(borrow)]
    encrypted_content: Option<Text<'a>>,
    #[serde(borrow)]
    call_id: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    action: Option<&'a RawValue>,
    #[serde(borrow)]
    operation: Option<&'a RawValue>,
    #[serde(borrow)]
    code: Option<&'a RawValue>,
    #[serde(borrow)]
    queries: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Content<'a>,
    #[serde(borrow)]
    outputs: Option<&'a RawValue>,
    #[serde(borrow)]
    results: Option<&'a RawValue>,
    #[serde(borrow)]
    tools: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<Text<'a>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

impl Item<'_> {
    pub(crate) fn kind(&self) -> &str {
        match &self.kind {
            Some(kind) => kind,
            None => "message",
        }
    }

    pub(crate) fn is_user(&self) -> bool {
        self.role.as_deref() == Some("user")
    }

    /// The content of a message.
    pub(crate) fn parts(self, session: &mut Session<'_>, record: Record<'_>) -> Vec<Piece> {
        pieces(self.content, session, record.place)
    }

    /// The text of its content.
    pub(crate) fn texts(self, session: &mut Session<'_>, record: Record<'_>) -> Vec<Arc<str>> {
        let parts = self.parts(session, record).into_iter();
        parts.filter_map(|part| if let Piece::Text(text) = part { Some(text) } else { None }).collect()
    }
}

fn is_model(record: Record<'_>) -> bool {
    let Ok(item) = serde_json::from_str::<Item<'_>>(record.text) else { return false };
    match item.kind() {
        "message" => item.role.is_some_and(|role| &*role == "assistant"),
        "tool_search_output" => item.call_id.is_none(),
        kind => !kind.ends_with("_output") && kind != "additional_tools",
    }
}

fn prompt(record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    let text: Option<Text<'_>> = record.parse("instructions")?;
    session.system(text.unwrap_or_default(), record.place)
}

fn any_item(record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    if record.text.starts_with('"') {
        let text: Text<'_> = record.parse("the input")?;
        return session.human(text, record.place);
    }
    let item: Item<'_> = record.parse("a Responses item")?;
    self::item(item, record, session)
}

/// One item, whoever recorded it.
pub(crate) fn item(item: Item<'_>, record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    let place = record.place;
    match item.kind() {
        "message" => message(item, record, session),
        "reasoning" => {
            let turn = reasoning(item, session, record);
            session.run(turn, place)
        }
        "function_call" | "custom_tool_call" | "local_shell_call" | "shell_call" | "computer_call"
        | "apply_patch_call" | "tool_search_call" => {
            let turn = call(&item, record)?;
            session.run(turn, place)
        }
        "web_search_call" | "file_search_call" | "code_interpreter_call" | "image_generation_call" | "mcp_call" => {
            hosted(item, record, session)
        }
        "tool_search_output" => {
            let parts = item.tools.map(|tools| Piece::Text(json(tools.get()))).into_iter().collect();
            let call = item.call_id.as_deref();
            let tool = Some("tool_search").filter(|_| call.is_none());
            session.result(Outcome { call, tool, parts, ..Outcome::default() }, record.text, place)
        }
        kind if kind.ends_with("_output") => {
            let unasked = item.call_id.is_none();
            let parts = pieces(item.output, session, place);
            let (call, tool) = (item.call_id.as_deref(), item.name.as_deref());
            session.result(Outcome { call, tool, unasked, parts, ..Outcome::default() }, record.text, place)
        }
        // Schemas of tools that the model saw from here on.
        "mcp_list_tools" | "additional_tools" => session.system(json(record.text), place),
        "compaction" | "compaction_summary" | "context_compaction" => {
            session.compacted(CompactionKind::Summary { text: None, kept_from: None }, (None, None), place)
        }
        "item_reference" => {
            session.left_out("item_reference");
            Ok(())
        }
        kind => {
            session.unknown(&format!("item {kind}"), place.line);
            Ok(())
        }
    }
}

fn message(item: Item<'_>, record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    let place = record.place;
    let role = item.role.ok_or_else(|| record.lacks("a message without `role`"))?;
    let parts = pieces(item.content, session, place);
    match &*role {
        "user" => session.human_parts(parts, place),
        "assistant" => {
            let mut turn = Turn::default();
            for part in parts {
                match part {
                    Piece::Text(text) => turn.say(text),
                    Piece::Picture(_) => session.unknown("picture of the model", place.line),
                }
            }
            session.run(turn, place)
        }
        "system" | "developer" => {
            for part in parts {
                if let Piece::Text(text) = part {
                    session.system(text, place)?;
                }
            }
            Ok(())
        }
        role => {
            session.unknown(&format!("role {role}"), place.line);
            Ok(())
        }
    }
}

/// Reasoning: what can be read of it; else its sealed bytes, which are sent back as they are.
fn reasoning(item: Item<'_>, session: &mut Session<'_>, record: Record<'_>) -> Turn {
    let sealed = item.encrypted_content.as_ref().is_some_and(|sealed| !sealed.is_empty());
    let mut turn = Turn::default();
    for piece in
        pieces(item.summary, session, record.place).into_iter().chain(pieces(item.content, session, record.place))
    {
        if let Piece::Text(text) = piece {
            turn.think(text, sealed);
        }
    }
    if let Some(bytes) = item.encrypted_content.filter(|_| turn.is_empty()) {
        turn.think(bytes, sealed);
    }
    turn
}

fn call(item: &Item<'_>, record: Record<'_>) -> Result<Turn, Fault> {
    let kind = item.kind();
    let name = match (item.name.as_deref(), kind) {
        (Some(name), _) => name,
        (None, "function_call" | "custom_tool_call") => {
            return Err(record.lacks(format!("a `{kind}` without `name`")));
        }
        (None, kind) => kind.trim_end_matches("_call"),
    };
    let given = item.arguments.or(item.input).or(item.action).or(item.operation).or(item.code).or(item.queries);
    let mut turn = Turn::default();
    turn.call(NewCall::new(item.call_id.as_deref(), name, arguments(given)));
    Ok(turn)
}

/// A call that the provider ran: its result is in it, and where there is none, it stands for it.
fn hosted(item: Item<'_>, record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    let item = Item { call_id: item.call_id.or_else(|| item.id.clone()), ..item };
    session.run(call(&item, record)?, record.place)?;
    let failed = item.error.is_some();
    let mut parts = match item.result {
        Some(picture) => vec![Piece::Picture(Picture::from_base64(&picture))],
        None => pieces(item.output, session, record.place),
    };
    if let (Some(more), true) = (item.error.or(item.outputs).or(item.results), parts.is_empty()) {
        parts.push(Piece::Text(json(more.get())));
    }
    let call = item.call_id.as_deref();
    session.result(Outcome { call, failed, parts, ..Outcome::default() }, record.text, record.place)
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow)]
    output: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    object: Option<Text<'a>>,
}

fn response(record: Record<'_>, session: &mut Session<'_>) -> Result<bool, Fault> {
    let response: Response<'_> = record.parse("a response")?;
    let output = response.output.unwrap_or_default();
    if response.object.as_deref() == Some("response.compaction") {
        let items = output.iter().map(|item| record.part(item)).collect();
        replaced(items, None, session, record)?;
        return Ok(true);
    }
    for item in &output {
        any_item(record.part(item), session)?;
    }
    Ok(!output.is_empty())
}

/// These items took the place of all that stood before.
pub(crate) fn replaced(
    items: Vec<Record<'_>>,
    summary: Option<Arc<str>>,
    session: &mut Session<'_>,
    record: Record<'_>,
) -> Result<(), Fault> {
    let mut texts = Vec::new();
    for record in items {
        let item: Item<'_> = record.parse("an item of a compaction")?;
        texts.extend(item.texts(session, record));
    }
    session.compacted(CompactionKind::Replaced { texts, summary }, (None, None), record.place)
}
