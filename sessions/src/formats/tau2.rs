//! tau2-bench: the policy of all conversations in `info`, and users who call tools of their own, which the agent never sees.

use serde::Deserialize;

use super::{
    blocks::Text,
    chat::{self, Message},
    walk::{Name, Shared, documents, each},
};
use crate::{
    detect::Head,
    error::Fault,
    records::{Document, Record, Source},
    report::RepairKind,
    session::Session,
};

pub(crate) fn looks_like(head: &Head) -> bool {
    head.has("info.environment_info") || head.has("simulations[].messages")
}

#[derive(Deserialize)]
struct Info<'a> {
    #[serde(borrow)]
    environment_info: Option<Environment<'a>>,
}

#[derive(Deserialize)]
struct Environment<'a> {
    #[serde(borrow)]
    policy: Option<Text<'a>>,
}

/// What only tau2 adds to a message.
#[derive(Deserialize)]
struct Added<'a> {
    /// Of a result, its call.
    #[serde(borrow)]
    id: Option<Text<'a>>,
    /// Who called.
    #[serde(borrow)]
    requestor: Option<Text<'a>>,
    error: Option<bool>,
}

pub(crate) fn read(source: &mut Source<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    documents(source, session, |document, session| {
        let mut policy: Shared = None;
        let mut simulated = false;
        document.object()?;
        while let Some(key) = document.key()? {
            match &*key {
                "info" => {
                    let record = document.value()?;
                    policy = self::policy(record)?;
                    if simulated && policy.is_some() {
                        session.repair(record.place.line, RepairKind::Late { what: "the policy" });
                    }
                }
                "simulations" => {
                    simulated = true;
                    document.array()?;
                    while document.element()? {
                        simulation(document, &policy, session)?;
                    }
                }
                _ => document.skip()?,
            }
        }
        Ok(())
    })
}

fn policy(record: Record<'_>) -> Result<Shared, Fault> {
    let info: Info<'_> = record.parse("the `info` of tau2 results")?;
    Ok(info.environment_info.and_then(|environment| environment.policy).map(|policy| (policy.into(), record.place)))
}

fn simulation(document: &mut Document<'_, '_>, policy: &Shared, session: &mut Session<'_>) -> Result<(), Fault> {
    let (place, mut id, mut task) = (document.place()?, Name::default(), Name::default());
    document.object()?;
    while let Some(key) = document.key()? {
        match &*key {
            "id" => id.is(document.value()?),
            "task_id" => task.is(document.value()?),
            "messages" => {
                session.begin(task.get().or(id.get()), place)?;
                if let Some((policy, place)) = policy {
                    session.system(policy.clone(), *place)?;
                }
                each(document, session, message)?;
            }
            _ => document.skip()?,
        }
    }
    Ok(())
}

fn message(record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    let (mut message, added): (Message<'_>, Added<'_>) =
        (record.parse("a tau2 message")?, record.parse("a tau2 message")?);
    match &*message.role {
        "user" => {
            message.tool_calls.take().into_iter().flatten().for_each(|_| session.left_out("call of the user"));
        }
        "tool" if added.requestor.as_deref() == Some("user") => {
            session.left_out("result of the user");
            return Ok(());
        }
        "tool" => message.tool_call_id = added.id,
        _ => {}
    }
    chat::message(message, record, session, added.error.unwrap_or_default())
}
