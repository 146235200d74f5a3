//! Inspect: an evaluation log as one document. A sample's `messages` are its conversation; long texts of it can stand in its
//! `attachments`, so the messages from the first that refers to one wait for the end of their sample.

use std::collections::{HashMap, VecDeque};

use serde::Deserialize;

use super::{
    blocks::{Content, Text},
    chat::{self, Message},
    walk::{Name, documents, each},
};
use crate::{
    detect::Head,
    error::Fault,
    records::{Document, Record, Source},
    report::RepairKind,
    session::Session,
    step::Place,
};

/// What stands where the text was.
const ATTACHMENT: &str = "attachment://";

pub(crate) fn looks_like(head: &Head) -> bool {
    head.has("eval.eval_id") || head.has("eval.run_id") || head.has("samples[].messages") && head.has("version")
}

/// What only Inspect adds to a message.
#[derive(Deserialize)]
struct Added<'a> {
    /// Of a result, the tool.
    #[serde(borrow)]
    function: Option<Text<'a>>,
    #[serde(borrow)]
    error: Option<ToolError<'a>>,
}

#[derive(Deserialize)]
struct ToolError<'a> {
    #[serde(borrow)]
    message: Text<'a>,
}

pub(crate) fn read(source: &mut Source<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    documents(source, session, |document, session| {
        document.object()?;
        while let Some(key) = document.key()? {
            if key != "samples" || !document.at_array()? {
                document.skip()?;
                continue;
            }
            document.array()?;
            while document.element()? {
                sample(document, session)?;
            }
        }
        Ok(())
    })
}

/// The messages that wait for their attachments, and the attachments: as JSON without quotes, by their hash.
#[derive(Default)]
struct Waiting {
    messages: VecDeque<(String, Place)>,
    attachments: HashMap<String, String>,
}

fn sample(document: &mut Document<'_, '_>, session: &mut Session<'_>) -> Result<(), Fault> {
    let (place, mut id, mut epoch) = (document.place()?, Name::default(), Name::default());
    let mut waiting = Waiting::default();
    document.object()?;
    while let Some(key) = document.key()? {
        match &*key {
            "id" => id.is(document.value()?),
            "epoch" => epoch.is(document.value()?),
            "messages" => {
                let name = match (id.get(), epoch.get()) {
                    (Some(id), Some(epoch)) if epoch != "1" => Some(format!("{id} epoch {epoch}")),
                    (id, _) => id.map(Into::into),
                };
                session.begin(name.as_deref(), place)?;
                each(document, session, |record, session| waiting.message(record, session))?;
            }
            "attachments" if document.at_object()? => {
                document.object()?;
                while let Some(hash) = document.key()? {
                    waiting.attachment(hash, document.value()?);
                }
            }
            "events" => {
                document.skip()?;
                session.left_out("events");
            }
            _ => document.skip()?,
        }
    }
    waiting.finish(session)
}

impl Waiting {
    /// A message, or one behind a message that waits.
    fn message(&mut self, record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
        if self.messages.is_empty() && !record.text.contains(ATTACHMENT) {
            return message(record, session);
        }
        self.messages.push_back((record.text.into(), record.place));
        Ok(())
    }

    fn attachment(&mut self, hash: String, text: Record<'_>) {
        if let Some(text) = text.text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
            self.attachments.insert(hash, text.into());
        }
    }

    fn finish(self, session: &mut Session<'_>) -> Result<(), Fault> {
        let Self { messages, attachments } = self;
        for (text, place) in messages {
            let text = filled(&text, &attachments, place, session);
            message(Record { text: &text, place }, session)?;
        }
        Ok(())
    }
}

/// The message with its attachments in their places. Both are JSON, so no text has to be escaped again.
fn filled(text: &str, attachments: &HashMap<String, String>, place: Place, session: &mut Session<'_>) -> String {
    let mut parts = text.split(ATTACHMENT);
    let mut all = String::from(parts.next().unwrap_or_default());
    for part in parts {
        let (hash, rest) = part.split_at(part.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(part.len()));
        match attachments.get(hash) {
            Some(attached) => all.push_str(attached),
            None => {
                let what = format!("{ATTACHMENT}{hash}");
                all.push_str(&what);
                session.repair(place.line, RepairKind::NoText { what });
            }
        }
        all.push_str(rest);
    }
    all
}

fn message(record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    let (mut message, added): (Message<'_>, Added<'_>) =
        (record.parse("an Inspect message")?, record.parse("an Inspect message")?);
    let failed = added.error.is_some();
    message.name = message.name.or(added.function);
    // The model is told the error where there is no other text.
    if let (Some(error), true) = (added.error, message.content.is_empty()) {
        message.content = Content::Text(error.message);
    }
    chat::message(message, record, session, failed)
}
