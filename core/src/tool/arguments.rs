//! A call's arguments: exactly what the schema says, or an error.

use std::fmt;

use serde::{Deserialize, Deserializer, de};
use serde_json::Value;

use super::{AnswerError, Dynamic, Form, MAX_OFFERED, SUMMARIZE, Static, answer::Request, error::clip};

/// The most that the arguments of a call may take, in bytes.
const MAX_BYTES: usize = 1 << 20;

/// Arguments as a provider gives them.
#[derive(Clone, Copy, Debug)]
pub(super) enum Given<'a> {
    /// As text that holds JSON.
    Text(Option<&'a Value>),
    /// As JSON.
    Object(Option<&'a Value>),
}

/// Reads the arguments of one call.
pub(super) struct Reader {
    call: usize,
    tool: &'static str,
    names: Option<(&'static str, Vec<String>)>,
    summary: Option<String>,
    bytes: usize,
}

impl Reader {
    pub(super) fn new(call: usize, tool: &'static str) -> Self {
        Self { call, tool, names: None, summary: None, bytes: 0 }
    }

    pub(super) fn read(mut self, given: Given<'_>) -> Result<Request, AnswerError> {
        match given {
            Given::Text(Some(Value::String(text))) => {
                for (key, value) in &self.parse(text)? {
                    self.field(key, value)?;
                }
            }
            Given::Object(Some(Value::Object(fields))) => {
                for (key, value) in fields {
                    self.field(key, value)?;
                }
            }
            Given::Text(other) => return Err(self.of_type("arguments", "text that holds JSON", kind(other))),
            Given::Object(other) => return Err(self.of_type("arguments", "an object", kind(other))),
        }
        self.finish()
    }

    fn parse(&self, text: &str) -> Result<Vec<(String, Value)>, AnswerError> {
        if text.len() > MAX_BYTES {
            return Err(self.too_large());
        }
        let fields: Result<Fields, _> = serde_json::from_str(text);
        fields.map(|fields| fields.0).map_err(|source| {
            if source.is_data() {
                self.of_type("arguments", "an object", "another JSON value")
            } else {
                AnswerError::Json { call: self.call, tool: self.tool, source }
            }
        })
    }

    fn field(&mut self, key: &str, value: &Value) -> Result<(), AnswerError> {
        match key {
            Dynamic::PROPERTY => self.names(Dynamic::PROPERTY, value),
            Static::PROPERTY => self.names(Static::PROPERTY, value),
            "summary" if self.tool == SUMMARIZE => self.summary(value),
            _ => Err(self.unknown(key)),
        }
    }

    fn names(&mut self, property: &'static str, value: &Value) -> Result<(), AnswerError> {
        match self.names {
            Some((earlier, _)) if earlier == property => return Err(self.repeated(property)),
            Some(_) => return Err(self.unknown(property)),
            None => {}
        }
        let Value::Array(entries) = value else {
            return Err(self.of_type(property, "an array", kind(Some(value))));
        };
        if entries.len() > MAX_OFFERED {
            return Err(AnswerError::TooManyNames { call: self.call, tool: self.tool, most: MAX_OFFERED });
        }
        let mut names = Vec::with_capacity(entries.len());
        for (position, entry) in entries.iter().enumerate() {
            let Value::String(name) = entry else {
                return Err(self.of_type(format!("{property}[{position}]"), "a string", kind(Some(entry))));
            };
            names.push(self.take(name)?);
        }
        self.names = Some((property, names));
        Ok(())
    }

    fn summary(&mut self, value: &Value) -> Result<(), AnswerError> {
        if self.summary.is_some() {
            return Err(self.repeated("summary"));
        }
        let Value::String(summary) = value else {
            return Err(self.of_type("summary", "a string", kind(Some(value))));
        };
        self.summary = Some(self.take(summary)?);
        Ok(())
    }

    fn finish(self) -> Result<Request, AnswerError> {
        let (call, tool) = (self.call, self.tool);
        let missing = |field| AnswerError::Missing { call, tool, field };
        let (property, names) = self.names.ok_or_else(|| missing("the array of `spans` or `lanes`"))?;
        let property = Some(property);
        if tool == SUMMARIZE {
            let summary = self.summary.ok_or_else(|| missing("`summary`"))?;
            Ok(Request::Summarize { property, names, summary })
        } else {
            Ok(Request::Prune { property, names })
        }
    }

    fn take(&mut self, text: &str) -> Result<String, AnswerError> {
        self.bytes = self.bytes.saturating_add(text.len());
        if self.bytes > MAX_BYTES { Err(self.too_large()) } else { Ok(text.to_owned()) }
    }

    fn of_type(&self, at: impl Into<String>, expected: &'static str, found: &'static str) -> AnswerError {
        AnswerError::Type { call: self.call, tool: self.tool, at: at.into(), expected, found }
    }

    fn unknown(&self, field: &str) -> AnswerError {
        AnswerError::UnknownField { call: self.call, tool: self.tool, field: clip(field) }
    }

    fn repeated(&self, field: &'static str) -> AnswerError {
        AnswerError::RepeatedField { call: self.call, tool: self.tool, field }
    }

    fn too_large(&self) -> AnswerError {
        AnswerError::TooLarge { call: self.call, tool: self.tool, most: MAX_BYTES }
    }
}

pub(super) fn kind(value: Option<&Value>) -> &'static str {
    match value {
        None => "missing",
        Some(Value::Null) => "null",
        Some(Value::Bool(_)) => "a boolean",
        Some(Value::Number(_)) => "a number",
        Some(Value::String(_)) => "a string",
        Some(Value::Array(_)) => "an array",
        Some(Value::Object(_)) => "an object",
    }
}

/// An object's fields as written: a map would keep one of two that share a name.
pub(super) struct Fields(pub(super) Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(Visitor)
    }
}
