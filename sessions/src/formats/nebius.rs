//! SWE-agent trajectories as Nebius publishes them: the call is the last fenced block of the model's text.

use std::sync::Arc;

use serde::Deserialize;

use super::{
    blocks::Text,
    prose::{Adjacent, fenced, swe_agent_tool},
    walk::{Name, conversations, each},
};
use crate::{
    detect::Head,
    error::Fault,
    records::{Document, Record, Source},
    session::Session,
};

pub(crate) fn looks_like(head: &Head) -> bool {
    ["[].", ""].iter().any(|at| {
        head.has(&format!("{at}trajectory[].system_prompt")) || head.says(&format!("{at}trajectory[].role"), "ai")
    })
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    role: Text<'a>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    system_prompt: Option<Text<'a>>,
}

pub(crate) fn read(source: &mut Source<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    conversations(source, session, conversation)
}

fn conversation(document: &mut Document<'_, '_>, session: &mut Session<'_>) -> Result<(), Fault> {
    let (place, mut name) = (document.place()?, Name::default());
    document.object()?;
    while let Some(key) = document.key()? {
        match &*key {
            "instance_id" => name.is(document.value()?),
            "trajectory" => {
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
    let message: Message<'_> = record.parse("a Nebius message")?;
    if let ("system", Some(prompt)) = (&*message.role, message.system_prompt) {
        return session.system(prompt, record.place);
    }
    let text: Arc<str> =
        message.text.ok_or_else(|| record.lacks(format!("a message of `{}` without text", &*message.role)))?.into();
    match &*message.role {
        "system" => session.system(text, record.place),
        "user" => prose.user(text, false, record, session),
        "ai" => {
            let command = fenced(&text).last().map(|(_, command)| command).filter(|command| !command.is_empty());
            let call = command.map(|command| (swe_agent_tool(command), command.into()));
            prose.model(text.clone(), call, session, record.place)
        }
        role => {
            session.unknown(&format!("message {role}"), record.place.line);
            Ok(())
        }
    }
}
