//! Conversations, recorded or made up: what was said, what was read, and each write call.
//!
//! From the corpus: `tau-bench` (calls as OpenAI Chat has them) and `tau2-bench` (arguments as objects). A call's id is not
//! unique there, so a result belongs to the newest call of its id that has none yet.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context as _, Result};
use keepspan::Signature;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::requests::Request;

/// The write calls that are known.
pub const WRITES: [&str; 7] = [
    "book_reservation",
    "update_reservation_flights",
    "update_reservation_baggages",
    "update_reservation_passengers",
    "cancel_reservation",
    "send_certificate",
    "transfer_to_human_agents",
];

/// Conversations of one origin.
pub struct Source {
    pub name: &'static str,
    /// Whether an agent made these calls; or they are made up.
    pub recorded: bool,
    pub conversations: Vec<Conversation>,
}

/// One customer's conversation, and what the airline knows when it begins.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Conversation {
    pub name: String,
    pub turns: Vec<Turn>,
    /// Reservations that are open.
    pub reservations: BTreeSet<String>,
    /// Payment methods whose balance is known; any other pays whatever is asked.
    pub balances: Vec<(String, f64)>,
    /// What the airline rejected in the recording, with its words: rules of its own that are not replayed.
    pub rejections: Vec<(Signature, String)>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Turn {
    System(String),
    Customer(String),
    Agent(String),
    /// What a tool read, of which subject.
    Read {
        tool: String,
        of: String,
        text: String,
    },
    Write(Write),
    /// The customer tops up a payment method: nothing that the agent sees before it reads again.
    TopUp(String, f64),
}

/// A write call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Write {
    pub request: Request,
    /// Why the same is asked once more, where the customer wants it twice.
    pub again: Option<String>,
    /// The reservation that a booking made.
    pub made: Option<String>,
}

impl Conversation {
    /// The write calls, each with its turn.
    pub fn writes(&self) -> impl Iterator<Item = (usize, &Write)> {
        self.turns.iter().enumerate().filter_map(|(at, turn)| match turn {
            Turn::Write(write) => Some((at, write)),
            _ => None,
        })
    }
}

/// The two recordings of the corpus.
pub fn corpus(folder: &Path) -> Result<Vec<Source>> {
    let read = |file: &str| {
        let path = folder.join(file);
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        serde_json::from_str::<Value>(&text).with_context(|| path.display().to_string())
    };
    let of = |name, list: &Value, messages: &str| {
        let list = list.as_array().with_context(|| format!("{name}: no list of conversations"))?;
        let read = |(at, it): (usize, &Value)| {
            let task = it.get("task_id").map_or_else(|| at.to_string(), |task| task.to_string().replace('"', ""));
            conversation(task.clone(), it.get(messages)).with_context(|| format!("{name}, task {task}"))
        };
        Ok::<_, anyhow::Error>(Source {
            name,
            recorded: true,
            conversations: list.iter().enumerate().map(read).collect::<Result<_>>()?,
        })
    };
    let tau = read("tau-bench/airline-gpt4o-writes.json")?;
    let tau2 = read("tau2-bench/airline-gptoss-duplicate-writes.json")?;
    let simulations = tau2.get("simulations").unwrap_or(&Value::Null);
    Ok(vec![of("tau-bench", &tau, "traj")?, of("tau2-bench", simulations, "messages")?])
}

/// A call that has no result yet.
struct Open {
    id: String,
    tool: String,
    arguments: Value,
}

fn conversation(name: String, messages: Option<&Value>) -> Result<Conversation> {
    let messages = messages.and_then(Value::as_array).context("no list of messages")?;
    let mut read = Reader { conversation: Conversation { name, ..Conversation::default() }, ..Reader::default() };
    for (at, message) in messages.iter().enumerate() {
        read.message(message).with_context(|| format!("message {at}"))?;
    }
    Ok(read.done())
}

/// A conversation as it is read.
#[derive(Default)]
struct Reader {
    conversation: Conversation,
    open: Vec<Open>,
    accepted: BTreeSet<Signature>,
    made: BTreeSet<String>,
}

impl Reader {
    fn message(&mut self, message: &Value) -> Result<()> {
        let field = |name: &str| message.get(name).and_then(Value::as_str);
        let text = field("content").unwrap_or_default().to_owned();
        let turn = match field("role") {
            Some("system") => Turn::System(text),
            Some("user") => Turn::Customer(text),
            Some("tool") => {
                let id =
                    field("tool_call_id").or_else(|| field("id")).context("a result without the id of its call")?;
                return self.result(id, text);
            }
            _ => {
                let calls = message.get("tool_calls").and_then(Value::as_array);
                for call in calls.into_iter().flatten() {
                    self.open.push(open(call)?);
                }
                Turn::Agent(text)
            }
        };
        if !matches!(&turn, Turn::System(text) | Turn::Customer(text) | Turn::Agent(text) if text.trim().is_empty()) {
            self.conversation.turns.push(turn);
        }
        Ok(())
    }

    fn result(&mut self, id: &str, text: String) -> Result<()> {
        let at = self.open.iter().rposition(|call| call.id == id).with_context(|| format!("no call of id {id}"))?;
        let Open { tool, arguments, .. } = self.open.remove(at);
        if !WRITES.contains(&tool.as_str()) {
            let of = format!("{tool} {arguments}");
            let text = if text.is_empty() { "nothing".to_owned() } else { text };
            self.conversation.turns.push(Turn::Read { tool, of, text });
            return Ok(());
        }
        let request = Request { tool, arguments };
        let mut made = None;
        if text.starts_with("Error") {
            self.conversation.rejections.push((request.signature(), text));
        } else {
            self.accepted.insert(request.signature());
            let booked =
                || Some(serde_json::from_str::<Value>(&text).ok()?.get("reservation_id")?.as_str()?.to_owned());
            made = (request.tool == "book_reservation").then(booked).flatten();
        }
        self.made.extend(made.clone());
        self.conversation.reservations.extend(request.text("reservation_id").map(str::to_owned));
        self.conversation.turns.push(Turn::Write(Write { request, again: None, made }));
        Ok(())
    }

    /// A request that was rejected and later accepted is decided by the airline's own rules.
    fn done(self) -> Conversation {
        let Self { mut conversation, accepted, made, .. } = self;
        conversation.rejections.retain(|(request, _)| !accepted.contains(request));
        conversation.reservations.retain(|reservation| !made.contains(reservation));
        conversation
    }
}

fn open(call: &Value) -> Result<Open> {
    let function = call.get("function").unwrap_or(call);
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let arguments = match function.get("arguments").context("a call without arguments")? {
        Value::String(json) => serde_json::from_str(json).context("arguments that are no JSON")?,
        arguments => arguments.clone(),
    };
    let tool = text(function, "name").context("a call without a name")?;
    Ok(Open { id: text(call, "id").unwrap_or_default(), tool, arguments })
}
