//! A model's whole turn, in one shape for every provider: text, calls of every tool, cost.

use serde_json::Value;

use super::arguments::Given;

/// A finished turn, before anything asks which of its calls it takes.
#[derive(Debug)]
pub struct Turn<'a> {
    /// The text beside the calls, one block a line.
    pub(super) rationale: String,
    pub(super) calls: Vec<Called<'a>>,
    pub(super) output_tokens: Option<u64>,
}

/// A call of any tool.
#[derive(Debug)]
pub(super) struct Called<'a> {
    pub(super) id: Option<&'a str>,
    pub(super) name: Option<&'a str>,
    pub(super) arguments: Given<'a>,
}

impl<'a> Turn<'a> {
    pub(super) fn costing(output_tokens: Option<u64>) -> Self {
        Self { rationale: String::new(), calls: Vec::new(), output_tokens }
    }

    /// Adds a block of text.
    pub(super) fn say(&mut self, text: Option<&Value>) {
        let Some(text) = text.and_then(Value::as_str).filter(|text| !text.is_empty()) else { return };
        if !self.rationale.is_empty() {
            self.rationale.push('\n');
        }
        self.rationale.push_str(text);
    }

    pub(super) fn call(&mut self, id: Option<&'a Value>, name: Option<&'a Value>, arguments: Given<'a>) {
        let (id, name) = (id.and_then(Value::as_str), name.and_then(Value::as_str));
        self.calls.push(Called { id, name, arguments });
    }
}
