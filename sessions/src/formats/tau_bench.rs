//! tau-bench: a list of conversations of the OpenAI shape. A failed call says so in its text alone.

use super::{
    blocks::Content,
    chat::{self, Message},
    walk::{Name, conversations, each},
};
use crate::{
    detect::Head,
    error::Fault,
    records::{Document, Record, Source},
    session::Session,
};

pub(crate) fn looks_like(head: &Head) -> bool {
    head.has("[].traj[].role") || head.has("traj[].role")
}

pub(crate) fn read(source: &mut Source<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    conversations(source, session, conversation)
}

fn conversation(document: &mut Document<'_, '_>, session: &mut Session<'_>) -> Result<(), Fault> {
    let (place, mut name) = (document.place()?, Name::default());
    document.object()?;
    while let Some(key) = document.key()? {
        match &*key {
            "task_id" => name.is(document.value()?),
            "traj" => {
                session.begin(name.get(), place)?;
                each(document, session, message)?;
            }
            _ => document.skip()?,
        }
    }
    Ok(())
}

fn message(record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    let message: Message<'_> = record.parse("a tau-bench message")?;
    let failed = matches!(&message.content, Content::Text(text) if text.starts_with("Error:"));
    chat::message(message, record, session, failed)
}
