//! The tool that a pointer's "recall s17" speaks of: its definition, and the calls of it in a model's turn (rule R8).

use std::{fmt, sync::Arc};

use serde_json::{Value, json};

use super::{
    AnswerError, Provider,
    arguments::{Fields, Given, kind},
    error::clip,
    turn::Called,
};
use crate::{NewSpan, SpanId};

/// The tool that recalls what a pointer stands for.
pub const RECALL: &str = "recall_span";

const DESCRIPTION: &str = "Recalls a message that was moved out of the context, word for word as it entered; nothing is \
                           read or run again. `span` is the id in its place, as s17. With all else null the whole \
                           message comes back to its place, or as much as there is room for. Of a large one ask for a \
                           part: the lines `from_line` to `to_line`, counted from 1, or the lines that hold the text \
                           `search`, in either case.";

/// A model's call of [`RECALL`], answered by [`Window::answer_recall`](crate::Window::answer_recall).
///
/// One whose arguments cannot be read is a call as well: the provider expects a result to each.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "the provider expects a result to every call"]
pub struct RecallCall {
    pub(crate) id: Option<Arc<str>>,
    pub(crate) asked: Result<Asked, RecallCallError>,
}

/// What a call asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) span: SpanId,
    pub(crate) wanted: Wanted,
}

/// How much of the span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Whole,
    /// From 1, both inclusive; to the last where no end is given.
    Lines {
        from: u64,
        to: Option<u64>,
    },
    /// Never empty, and in one line.
    Search(String),
}

/// Why the arguments of a [`RecallCall`] ask for nothing. The model can be told so: [`RecallCall::failed`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecallCallError {
    /// They are no JSON, or are cut off; nothing is repaired.
    #[error("the arguments are no JSON object ({reason}): call again")]
    NotAnObject {
        /// What was found, or what the parser said.
        reason: String,
    },
    /// A field has another type than the schema says.
    #[error("`{field}` should be {expected} and is {found}: call again")]
    Type {
        /// The field.
        field: &'static str,
        /// What the schema says.
        expected: &'static str,
        /// What was there.
        found: &'static str,
    },
    /// No number of a line.
    #[error("`{field}` is {given}: give a whole number from 1 on, or null")]
    Line {
        /// The field.
        field: &'static str,
        /// What was given, at most 200 characters of it.
        given: String,
    },
    /// A field the schema does not have.
    #[error("there is no field `{field}`: give `span`, with `from_line` and `to_line`, or `search`")]
    UnknownField {
        /// The field, at most 200 characters of it.
        field: String,
    },
    /// A field is given twice, so which of the two was meant is unknown.
    #[error("`{field}` is given twice: give it once")]
    RepeatedField {
        /// The field.
        field: &'static str,
    },
    /// No span is named.
    #[error("`span` is missing: give the id in the pointer, as s17")]
    NoSpan,
    /// What names the span is no id.
    #[error("`{given}` is no id of a span: give one as the pointer has it, as s17")]
    NotAnId {
        /// What was given, at most 200 characters of it.
        given: String,
    },
    /// The lines end before they begin.
    #[error("`to_line` {to} is before `from_line` {from}: lines are counted from 1, both inclusive")]
    Backwards {
        /// The first line.
        from: u64,
        /// The last line.
        to: u64,
    },
    /// A search that everything or nothing matches.
    #[error("`search` is empty or has a line break: give a text within one line, or null")]
    Search,
    /// Lines and a search are two ways to ask.
    #[error("`search` and lines are both given: give one, and null for the other")]
    Both,
}

impl RecallCall {
    /// The tool's definition as provider `P` takes it: the same bytes in every request, so a provider's prompt cache stays
    /// valid.
    pub fn tool<P: Provider>(_provider: P) -> Value {
        let or_null = |name| json!({ "type": [name, "null"] });
        let schema = json!({
            "type": "object",
            "properties": {
                "span": { "type": "string" },
                "from_line": or_null("integer"),
                "to_line": or_null("integer"),
                "search": or_null("string"),
            },
            // OpenAI's strict mode takes no optional field.
            "required": ["span", "from_line", "to_line", "search"],
            "additionalProperties": false,
        });
        P::definition(RECALL, DESCRIPTION, schema)
    }

    /// The calls of the tool in a provider's whole response body, in order; none when the turn has none. Calls of other
    /// tools are left to the agent. What a body is, see [`Answer::read`](super::Answer::read).
    ///
    /// # Errors
    /// [`AnswerError`] when the turn is cut off, refused or unfinished, or is none. A call that cannot be read refuses
    /// itself alone, where it is answered.
    pub fn read<P: Provider>(_provider: P, response: &Value) -> Result<Vec<Self>, AnswerError> {
        let calls = P::turn(response)?.calls;
        Ok(calls.iter().filter(|called| called.name == Some(RECALL)).map(Self::of).collect())
    }

    fn of(called: &Called<'_>) -> Self {
        Self { id: called.id.map(Arc::from), asked: Reader::read(called.arguments) }
    }

    /// The id to which the provider expects a result; none where it gave none.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// The span it names: one that need not exist.
    ///
    /// # Errors
    /// Why its arguments ask for nothing.
    pub fn span(&self) -> Result<SpanId, &RecallCallError> {
        self.asked.as_ref().map(|asked| asked.span)
    }

    /// The result that tells the model why nothing was recalled: what the error says, as a failed result of this call.
    pub fn failed(&self, error: &impl fmt::Display) -> NewSpan {
        let result = NewSpan::tool(RECALL, error.to_string()).failed();
        match &self.id {
            Some(id) => result.answers(id.clone()),
            None => result,
        }
    }
}

/// Reads the arguments: exactly what the schema says, where a field that is left out is null.
#[derive(Default)]
struct Reader {
    span: Option<SpanId>,
    from: Option<u64>,
    to: Option<u64>,
    search: Option<String>,
    seen: Vec<&'static str>,
}

impl Reader {
    fn read(given: Given<'_>) -> Result<Asked, RecallCallError> {
        match given {
            Given::Object(Some(Value::Object(fields))) => Self::default().fields(fields),
            Given::Text(Some(Value::String(text))) => {
                let fields: Result<Fields, _> = serde_json::from_str(text);
                let fields = fields.map_err(|error| RecallCallError::NotAnObject { reason: error.to_string() })?;
                Self::default().fields(fields.0.iter().map(|(key, value)| (key, value)))
            }
            Given::Object(other) | Given::Text(other) => {
                Err(RecallCallError::NotAnObject { reason: format!("they are {}", kind(other)) })
            }
        }
    }

    fn fields<'a>(
        mut self,
        fields: impl IntoIterator<Item = (&'a String, &'a Value)>,
    ) -> Result<Asked, RecallCallError> {
        for (key, value) in fields {
            self.field(key, value)?;
        }
        self.finish()
    }

    fn field(&mut self, key: &str, value: &Value) -> Result<(), RecallCallError> {
        let known = ["span", "from_line", "to_line", "search"].into_iter().find(|known| *known == key);
        let field = known.ok_or_else(|| RecallCallError::UnknownField { field: clip(key) })?;
        if self.seen.contains(&field) {
            return Err(RecallCallError::RepeatedField { field });
        }
        self.seen.push(field);
        match field {
            _ if value.is_null() => {}
            "from_line" => self.from = Some(line(field, value)?),
            "to_line" => self.to = Some(line(field, value)?),
            "search" => self.search = Some(text(field, value)?.to_owned()),
            _ => {
                let given = text(field, value)?;
                let id = SpanId::parse(given).ok_or_else(|| RecallCallError::NotAnId { given: clip(given) })?;
                self.span = Some(id);
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Asked, RecallCallError> {
        let span = self.span.ok_or(RecallCallError::NoSpan)?;
        let wanted = match (self.from, self.to, self.search) {
            (None, None, None) => Wanted::Whole,
            (None, None, Some(search)) if search.is_empty() || search.contains(['\n', '\r']) => {
                return Err(RecallCallError::Search);
            }
            (None, None, Some(search)) => Wanted::Search(search),
            (_, _, Some(_)) => return Err(RecallCallError::Both),
            (from, to, None) => Wanted::Lines { from: from.unwrap_or(1), to },
        };
        match wanted {
            Wanted::Lines { from, to: Some(to) } if to < from => Err(RecallCallError::Backwards { from, to }),
            wanted => Ok(Asked { span, wanted }),
        }
    }
}

fn text<'a>(field: &'static str, value: &'a Value) -> Result<&'a str, RecallCallError> {
    let other = || RecallCallError::Type { field, expected: "a string", found: kind(Some(value)) };
    value.as_str().ok_or_else(other)
}

/// A line's number; JSON has one kind of number, and some write a whole one as `10.0`.
fn line(field: &'static str, value: &Value) -> Result<u64, RecallCallError> {
    let whole = |number: &f64| number.fract() == 0.0 && (1.0..9e15).contains(number);
    let number = value.as_u64().or_else(|| value.as_f64().filter(whole).map(|number| number as u64));
    let other = || RecallCallError::Line { field, given: clip(&value.to_string()) };
    number.filter(|number| *number > 0).ok_or_else(other)
}
