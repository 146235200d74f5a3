//! mini-swe-agent: one command of bash a turn. Version 1.1 calls a function; before that the command is a fenced block, and its
//! output the next turn of the user. The exit code is in the output.

use std::sync::Arc;

use super::{
    blocks::Content,
    chat::{self, Message},
    prose::{self, Adjacent, fenced},
    walk::{documents, each},
};
use crate::{
    detect::Head,
    error::Fault,
    records::{Record, Source},
    session::Session,
};

/// The languages of a fenced block that is a command.
const LANGUAGES: &[&str] = &["bash", "mswea_bash_command"];

pub(crate) fn looks_like(head: &Head) -> bool {
    let list = head.has("[].role") && (head.text.contains("<returncode>") || head.text.contains("mswea_bash_command"));
    let whole = head.has("messages[].role") && head.has("info");
    list || head.has("trajectory_format")
        || whole && (head.has("info.mini_version") || head.text.contains("<returncode>"))
}

pub(crate) fn read(source: &mut Source<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    documents(source, session, |document, session| {
        session.begin(None, document.place()?)?;
        let mut prose = Adjacent::default();
        if document.at_array()? {
            return each(document, session, |record, session| message(record, &mut prose, session));
        }
        document.object()?;
        while let Some(key) = document.key()? {
            match &*key {
                "messages" => each(document, session, |record, session| message(record, &mut prose, session))?,
                _ => document.skip()?,
            }
        }
        Ok(())
    })
}

fn message(record: Record<'_>, prose: &mut Adjacent, session: &mut Session<'_>) -> Result<(), Fault> {
    let (message, place): (Message<'_>, _) = (record.parse("a mini-swe-agent message")?, record.place);
    match &*message.role {
        "user" => {
            let text = prose::text(message.content, session, place);
            let failed = failed(&text);
            prose.user(text, failed, record, session)
        }
        "assistant" if !message.calls() => {
            let text = prose::text(message.content, session, place);
            let call = command(&text).map(|command| ("bash", command));
            prose.model(text.clone(), call, session, place)
        }
        "tool" => {
            let failed = match &message.content {
                Content::Text(text) => self::failed(text),
                Content::Blocks(blocks) => {
                    blocks.first().and_then(|block| block.text.as_deref()).is_some_and(self::failed)
                }
                Content::Nothing => false,
            };
            chat::message(message, record, session, failed)
        }
        // What was handed in, after the model's last turn.
        "exit" => {
            session.left_out("exit");
            Ok(())
        }
        _ => {
            prose.leave();
            chat::message(message, record, session, false)
        }
    }
}

/// The command of a turn, which runs only where it is the one block.
fn command(text: &str) -> Option<Arc<str>> {
    let mut commands = fenced(text).filter(|(language, _)| LANGUAGES.contains(language));
    let (_, command) = commands.next().filter(|(_, command)| !command.is_empty())?;
    commands.next().is_none().then(|| command.into())
}

/// Whether the output says that the command did not exit with 0.
fn failed(output: &str) -> bool {
    let code = output.trim_start().strip_prefix("<returncode>").and_then(|rest| rest.split_once("</returncode>"));
    code.is_some_and(|(code, _)| code.trim() != "0")
}
