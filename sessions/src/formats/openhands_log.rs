//! The log of one model call of OpenHands: the messages as sent, and the response. Where the model cannot call functions, its
//! calls stand in the text.

use serde::Deserialize;

use super::{
    chat::Message,
    prose::Adjacent,
    swe_smith::tagged_message,
    walk::{documents, each},
};
use crate::{
    detect::Head,
    error::Fault,
    records::{Record, Source, parse},
    report::RepairKind,
    session::Session,
};

pub(crate) fn looks_like(head: &Head) -> bool {
    let named = ["context_window", "raw_messages", "latency_sec"].iter().any(|key| head.has(key));
    !head.lines && head.has("messages[].role") && (named || head.text.contains("You are OpenHands agent"))
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    message: &'a serde_json::value::RawValue,
}

pub(crate) fn read(source: &mut Source<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    documents(source, session, |document, session| {
        let place = document.place()?;
        session.begin(None, place)?;
        let (mut prose, mut told) = (Adjacent::attended(), false);
        document.object()?;
        while let Some(key) = document.key()? {
            match &*key {
                "messages" => {
                    if told {
                        session.repair(document.place()?.line, RepairKind::Late { what: "`messages`" });
                    }
                    each(document, session, |record, session| message(record, &mut prose, session))?;
                }
                "response" => {
                    told = true;
                    response(document.value()?, &mut prose, session)?;
                }
                // The same messages before they were turned into prose.
                "raw_messages" => {
                    document.skip()?;
                    session.left_out("raw_messages");
                }
                _ => document.skip()?,
            }
        }
        Ok(())
    })
}

fn message(record: Record<'_>, prose: &mut Adjacent, session: &mut Session<'_>) -> Result<(), Fault> {
    tagged_message(record.parse("an OpenHands message")?, record, prose, session)
}

fn response(record: Record<'_>, prose: &mut Adjacent, session: &mut Session<'_>) -> Result<(), Fault> {
    let response: Response<'_> = record.parse("the response of an OpenHands log")?;
    let choice = response.choices.first().ok_or_else(|| record.lacks("a response without choices"))?;
    let message: Message<'_> = parse(choice.message.get(), "the message of a response", record.place)?;
    tagged_message(message, record, prose, session)
}
