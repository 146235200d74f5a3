//! SWE-agent: the `history` of a `.traj`, which its other lists repeat. Calls are functions, or commands in the text that
//! `action` repeats, with their output as the next turn of the user.

use std::sync::Arc;

use keepspan::Role;
use serde::Deserialize;

use super::{
    blocks::Text,
    chat::{self, Message},
    prose::{self, Adjacent, swe_agent_tool},
    walk::{documents, each},
};
use crate::{
    detect::Head,
    error::Fault,
    records::{Record, Source},
    session::Session,
};

pub(crate) fn looks_like(head: &Head) -> bool {
    head.has("history[].role") || head.has("trajectory[].observation")
}

/// What only SWE-agent adds to a message.
#[derive(Deserialize)]
struct Added<'a> {
    #[serde(borrow)]
    action: Option<Text<'a>>,
    #[serde(borrow)]
    tool_call_ids: Option<Vec<Text<'a>>>,
    is_demo: Option<bool>,
}

/// Where the history stands.
#[derive(Default)]
struct History {
    prose: Adjacent,
    /// Whether the last message was of the demonstration.
    demo: bool,
}

pub(crate) fn read(source: &mut Source<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    documents(source, session, |document, session| {
        let place = document.place()?;
        document.object()?;
        while let Some(key) = document.key()? {
            match &*key {
                "history" => {
                    session.begin(None, place)?;
                    let mut history = History::default();
                    each(document, session, |record, session| message(record, &mut history, session))?;
                }
                "trajectory" => {
                    document.skip()?;
                    session.left_out("trajectory");
                }
                _ => document.skip()?,
            }
        }
        Ok(())
    })
}

fn message(record: Record<'_>, history: &mut History, session: &mut Session<'_>) -> Result<(), Fault> {
    let (mut message, added): (Message<'_>, Added<'_>) =
        (record.parse("a SWE-agent message")?, record.parse("a SWE-agent message")?);
    let (place, demo) = (record.place, added.is_demo.unwrap_or_default());
    // What follows the demonstration answers none of its calls.
    if std::mem::replace(&mut history.demo, demo) != demo {
        history.prose.leave();
    }
    if message.calls() {
        history.prose.leave();
    }
    match &*message.role {
        "user" => {
            let text = prose::text(message.content, session, place);
            if demo && !history.prose.is_open() {
                return session.notice(text, Role::User, place);
            }
            history.prose.user(text, false, record, session)
        }
        "assistant" if !message.calls() => {
            let text = prose::text(message.content, session, place);
            let action = added.action.as_deref().map(str::trim).filter(|action| !action.is_empty());
            // The harness ends a run in the model's name.
            if action.is_some_and(|action| action.starts_with("exit_") && !text.contains(action)) {
                history.prose.leave();
                return session.notice(text, Role::Assistant, place);
            }
            let call = action.map(|action| (swe_agent_tool(action), Arc::from(action)));
            history.prose.model(text, call, session, place)
        }
        _ => {
            let ids = added.tool_call_ids.into_iter().flatten();
            message.tool_call_id = message.tool_call_id.or(ids.into_iter().next());
            chat::message(message, record, session, false)
        }
    }
}
