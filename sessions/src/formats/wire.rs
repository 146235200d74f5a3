//! What the wire formats share: bodies, message lists, responses, lines of any of them, training files, and cassettes whose
//! requests repeat the history.

use std::{
    collections::HashMap,
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use super::blocks::Text;
use crate::{
    error::Fault,
    records::{Document, Record, Source},
    report::RepairKind,
    session::Session,
};

/// Where a body can stand in a file.
pub(crate) const BASES: &[&str] = &[
    "",
    "[].",
    "request.",
    "request.body.",
    "response.",
    "response.body.",
    "[].request.",
    "[].request.body.",
    "conversations[].exchanges[].request.",
    "conversations[].exchanges[].request.body.",
];

/// How a format spells its bodies.
pub(crate) struct Shape {
    /// The key of the list of items.
    pub(crate) items: &'static str,
    /// The key of the system prompt.
    pub(crate) system: &'static str,
    /// Whether the model made the item.
    pub(crate) is_model: fn(Record<'_>) -> bool,
    pub(crate) item: fn(Record<'_>, &mut Session<'_>) -> Result<(), Fault>,
    pub(crate) system_text: fn(Record<'_>, &mut Session<'_>) -> Result<(), Fault>,
    /// What a response says; `false` where it says nothing.
    pub(crate) response: fn(Record<'_>, &mut Session<'_>) -> Result<bool, Fault>,
}

/// The keys that tell what an object is.
#[derive(Deserialize)]
struct Outer<'a> {
    #[serde(borrow)]
    messages: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    contents: Option<&'a RawValue>,
    #[serde(borrow)]
    system: Option<&'a RawValue>,
    #[serde(borrow)]
    instructions: Option<&'a RawValue>,
    #[serde(borrow, rename = "systemInstruction", alias = "system_instruction")]
    system_instruction: Option<&'a RawValue>,
    #[serde(borrow)]
    body: Option<&'a RawValue>,
    #[serde(borrow)]
    request: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
    #[serde(borrow)]
    choices: Option<&'a RawValue>,
    #[serde(borrow)]
    candidates: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    instance_id: Option<&'a RawValue>,
    #[serde(borrow)]
    task_id: Option<&'a RawValue>,
}

impl<'a> Outer<'a> {
    fn items(&self, shape: &Shape) -> Option<&'a RawValue> {
        match shape.items {
            "messages" => self.messages,
            "input" => self.input,
            _ => self.contents,
        }
    }

    fn system(&self, shape: &Shape) -> Option<&'a RawValue> {
        match shape.system {
            "system" => self.system,
            "instructions" => self.instructions,
            _ => self.system_instruction,
        }
    }

    /// Whether it is a response, and no item of a conversation.
    fn is_response(&self, shape: &Shape) -> bool {
        match shape.items {
            "messages" => self.choices.is_some(),
            // A tool's output has the same key.
            "input" => self.output.is_some_and(|output| output.get().starts_with('[')) && !is_item(self),
            _ => self.candidates.is_some(),
        }
    }

    fn name(&self) -> Option<String> {
        let name = self.instance_id.or(self.task_id).or(self.id)?;
        serde_json::from_str(name.get()).ok().or_else(|| Some(name.get().into()))
    }
}

fn is_item(outer: &Outer<'_>) -> bool {
    outer.id.is_some_and(|id| !id.get().starts_with("\"resp_"))
}

/// The items of a conversation that were given, so that those which a later request repeats are not given again.
#[derive(Default)]
struct Given {
    /// Whether requests can repeat items: in exchanges, and in no others.
    repeats: bool,
    /// How many of each were given, and seen in the request at hand.
    counts: HashMap<u64, (u64, u64)>,
    /// Whether a response was given, whose echo the next request begins its new part with.
    answered: bool,
}

impl Given {
    fn next_request(&mut self) {
        self.counts.values_mut().for_each(|(_, seen)| *seen = 0);
    }

    /// Whether an item is new.
    fn is_new(&mut self, record: Record<'_>) -> bool {
        if !self.repeats {
            return true;
        }
        let Ok(Meaning(hash)) = serde_json::from_str(record.text) else { return true };
        let (given, seen) = self.counts.entry(hash).or_default();
        *seen = seen.saturating_add(1);
        if *seen > *given {
            *given = *seen;
            return true;
        }
        false
    }
}

pub(crate) fn read(source: &mut Source<'_>, session: &mut Session<'_>, shape: &Shape) -> Result<(), Fault> {
    let mut reader = Reader { shape, given: Given::default() };
    let head = source.head()?;
    if head.lines {
        return source.each_record(session, |record, session| reader.element(record, session));
    }
    let (mut document, mut first) = (Document::new(source), true);
    while document.more()? {
        if document.at_array()? {
            document.array()?;
            while document.element()? {
                let record = document.value()?;
                reader.element(record, session)?;
            }
        } else {
            if !std::mem::take(&mut first) {
                let place = document.place()?;
                session.begin(None, place)?;
            }
            reader.object(&mut document, session)?;
        }
    }
    Ok(())
}

struct Reader<'w> {
    shape: &'w Shape,
    given: Given,
}

impl Reader<'_> {
    /// The document that is one object: a body, an exchange, a response or a cassette.
    fn object(&mut self, document: &mut Document<'_, '_>, session: &mut Session<'_>) -> Result<(), Fault> {
        document.object()?;
        while let Some(key) = document.key()? {
            match key.as_str() {
                key if key == self.shape.items && document.at_array()? => {
                    document.array()?;
                    while document.element()? {
                        let record = document.value()?;
                        (self.shape.item)(record, session)?;
                    }
                }
                key if key == self.shape.items => {
                    let record = document.value()?;
                    (self.shape.item)(record, session)?;
                }
                key if is_system(key, self.shape) => {
                    let record = document.value()?;
                    if session.entries() > 0 {
                        session.repair(record.place.line, RepairKind::Late { what: "the system prompt" });
                    }
                    (self.shape.system_text)(record, session)?;
                }
                "request" | "body" => {
                    let record = document.value()?;
                    self.body(record, session)?;
                }
                "response" => {
                    let record = document.value()?;
                    self.answer(record, session)?;
                }
                "choices" | "candidates" | "output" | "content" => {
                    let place = document.place()?;
                    let record = document.value()?;
                    let whole = format!("{{\"{key}\":{}}}", record.text);
                    (self.shape.response)(Record { text: &whole, place }, session)?;
                }
                "conversations" if document.at_array()? => {
                    document.array()?;
                    while document.element()? {
                        self.cassette(document, session)?;
                    }
                }
                _ => document.skip()?,
            }
        }
        Ok(())
    }

    /// A conversation of a cassette.
    fn cassette(&mut self, document: &mut Document<'_, '_>, session: &mut Session<'_>) -> Result<(), Fault> {
        let place = document.place()?;
        self.given = Given::default();
        let mut begun = false;
        document.object()?;
        while let Some(key) = document.key()? {
            match key.as_str() {
                "source" | "name" if !begun => {
                    let name: Text<'_> = document.value()?.parse("the name of a conversation")?;
                    session.begin(Some(&*name), place)?;
                    begun = true;
                }
                "exchanges" => {
                    if !begun {
                        session.begin(None, place)?;
                        begun = true;
                    }
                    document.array()?;
                    while document.element()? {
                        let record = document.value()?;
                        self.exchange(record, session)?;
                    }
                }
                _ => document.skip()?,
            }
        }
        Ok(())
    }

    /// A line, or an element of a list: an item, an exchange, a response, or a body, which is a conversation of its own.
    fn element(&mut self, record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
        let outer: Outer<'_> = match record.text.starts_with('{') {
            true => record.parse("a body or message")?,
            false => {
                session.begin(None, record.place)?;
                return record.elements()?.into_iter().try_for_each(|item| (self.shape.item)(item, session));
            }
        };
        if outer.request.is_some() {
            return self.exchanged(outer, record, session);
        }
        if outer.items(self.shape).is_some() {
            self.given = Given::default();
            session.begin(outer.name().as_deref(), record.place)?;
            return self.request(outer, record, session);
        }
        if outer.is_response(self.shape) {
            return self.answer(record, session);
        }
        (self.shape.item)(record, session)
    }

    fn exchange(&mut self, record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
        self.exchanged(record.parse("an exchange")?, record, session)
    }

    fn exchanged(&mut self, outer: Outer<'_>, record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
        self.given.repeats = true;
        let request = outer.request.ok_or_else(|| record.lacks("an exchange without `request`"))?;
        self.body(record.part(request), session)?;
        match outer.response {
            Some(response) => self.answer(record.part(response), session),
            None => Ok(()),
        }
    }

    fn body(&mut self, record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
        self.request(record.parse("a request")?, record, session)
    }

    fn request(&mut self, outer: Outer<'_>, record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
        if let (Some(body), None) = (outer.body, outer.items(self.shape)) {
            return self.body(record.part(body), session);
        }
        self.given.next_request();
        if let Some(system) = outer.system(self.shape).map(|system| record.part(system)) {
            if self.given.is_new(system) {
                (self.shape.system_text)(system, session)?;
            } else {
                session.left_out("repeated message");
            }
        }
        let Some(items) = outer.items(self.shape) else { return Ok(()) };
        let mut echo = std::mem::take(&mut self.given.answered);
        for item in record.part(items).elements()? {
            if !self.given.is_new(item) {
                session.left_out("repeated message");
                continue;
            }
            echo = echo && (self.shape.is_model)(item);
            if echo {
                session.left_out("repeated message");
            } else {
                (self.shape.item)(item, session)?;
            }
        }
        Ok(())
    }

    fn answer(&mut self, record: Record<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
        if !record.text.starts_with('{') {
            if record.text != "null" {
                session.unknown("streamed response", record.place.line);
            }
            return Ok(());
        }
        let outer: Outer<'_> = record.parse("a response")?;
        if let Some(body) = outer.body {
            return self.answer(record.part(body), session);
        }
        self.given.answered = (self.shape.response)(record, session)?;
        Ok(())
    }
}

fn is_system(key: &str, shape: &Shape) -> bool {
    key == shape.system || shape.system == "systemInstruction" && key == "system_instruction"
}

/// The role of an item.
pub(crate) fn role(record: Record<'_>) -> Option<Text<'_>> {
    #[derive(Deserialize)]
    struct Role<'a> {
        #[serde(borrow)]
        role: Option<Text<'a>>,
    }
    serde_json::from_str::<Role<'_>>(record.text).ok()?.role
}

/// A hash of what a value says: the order of keys is no part of it, and neither are marks for the provider's cache, which move.
struct Meaning(u64);

impl<'de> Deserialize<'de> for Meaning {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(MeaningVisitor).map(Self)
    }
}

struct MeaningVisitor;

fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

impl<'de> Visitor<'de> for MeaningVisitor {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<u64, E> {
        Ok(0)
    }

    fn visit_bool<E>(self, value: bool) -> Result<u64, E> {
        Ok(hash(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<u64, E> {
        Ok(hash(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<u64, E> {
        Ok(hash(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<u64, E> {
        Ok(hash(value.to_bits()))
    }

    fn visit_str<E>(self, value: &str) -> Result<u64, E> {
        Ok(hash(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<u64, A::Error> {
        let mut hasher = DefaultHasher::new();
        while let Some(Meaning(element)) = list.next_element()? {
            element.hash(&mut hasher);
        }
        Ok(hasher.finish())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<u64, A::Error> {
        let mut all = 1_u64;
        while let Some((key, Meaning(value))) = map.next_entry::<Text<'_>, _>()? {
            if &*key != "cache_control" {
                all = all.wrapping_add(hash((&*key, value)));
            }
        }
        Ok(all)
    }
}
