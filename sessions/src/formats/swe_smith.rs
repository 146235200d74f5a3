//! SWE-smith: calls as `<function=…>` in the text, results as turns of the user.

use super::{
    chat::{self, Message},
    prose::{self, Adjacent, tagged},
    walk::{Name, conversations, each},
};
use crate::{
    detect::Head,
    error::Fault,
    records::{Document, Record, Source},
    session::Session,
};

pub(crate) fn looks_like(head: &Head) -> bool {
    // What names it comes after messages that are longer than any head.
    let lists =
        |at: &str| head.has(&format!("{at}messages[].role")) && !head.has(&format!("{at}messages[].tool_calls"));
    let named = ["[].traj_id", "traj_id"].iter().any(|key| head.has(key));
    (lists("[].") || lists("") && named) && head.text.contains("<function=")
}

pub(crate) fn read(source: &mut Source<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    conversations(source, session, conversation)
}

fn conversation(document: &mut Document<'_, '_>, session: &mut Session<'_>) -> Result<(), Fault> {
    let (place, mut name) = (document.place()?, Name::default());
    document.object()?;
    while let Some(key) = document.key()? {
        match &*key {
            "traj_id" | "instance_id" if name.get().is_none() => name.is(document.value()?),
            "messages" => {
                session.begin(name.get(), place)?;
                let mut prose = Adjacent::default();
                each(document, session, |record, session| message(record, &mut prose, session))?;
            }
            _ => document.skip()?,
        }
    }
    Ok(())
}

fn message(record: Record<'_>, prose: &mut Adjacent, session: &mut Session<'_>) -> Result<(), Fault> {
    tagged_message(record.parse("a SWE-smith message")?, record, prose, session)
}

/// A message of a model that writes its calls as `<function=…>`.
pub(crate) fn tagged_message(
    message: Message<'_>,
    record: Record<'_>,
    prose: &mut Adjacent,
    session: &mut Session<'_>,
) -> Result<(), Fault> {
    let place = record.place;
    match &*message.role {
        "user" => {
            let text = prose::text(message.content, session, place);
            prose.user(text, false, record, session)
        }
        "assistant" if !message.calls() => {
            let text = prose::text(message.content, session, place);
            let call = tagged(&text).map(|(tool, arguments)| (tool, arguments.to_string().into()));
            prose.model(text.clone(), call, session, place)
        }
        _ => {
            prose.leave();
            chat::message(message, record, session, false)
        }
    }
}
