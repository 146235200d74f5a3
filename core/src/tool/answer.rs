//! What a model answered, in one shape for every provider.

use serde_json::Value;

use super::{
    AnswerError, PRUNE, Provider, SUMMARIZE,
    arguments::Reader,
    turn::{Called, Turn},
};

/// What a model answered when it was offered the two tools: a whole, finished answer, or one that a program made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "an answer does nothing until it is applied"]
pub struct Answer {
    rationale: String,
    calls: Vec<Call>,
    output_tokens: Option<u64>,
}

/// A call of one of the two tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    id: Option<String>,
    request: Request,
}

/// What a call asks for. Names are as the model wrote them: unchecked, in any case, possibly none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// To evict.
    Prune {
        /// The array they stood in; none when a program made the answer.
        property: Option<&'static str>,
        names: Vec<String>,
    },
    /// To put a summary in their place.
    Summarize { property: Option<&'static str>, names: Vec<String>, summary: String },
}

impl Answer {
    /// Reads a provider's whole response body: an OpenAI chat completion (its first choice), an OpenAI response, an
    /// Anthropic message, a Gemini response (its first candidate), or the `params` of an MCP `tools/call`.
    ///
    /// Calls of other tools are left out, since an agent's own tools may be called beside these; every call of these two
    /// is taken, and one that cannot be read refuses the whole answer. Arguments are never repaired. Where they come as
    /// an object and not as text, a field that was given twice has lost one of its values before it gets here.
    ///
    /// # Errors
    /// [`AnswerError`] when the answer is cut off, refused or unfinished, is no answer, or calls a tool with anything but
    /// what its schema says.
    pub fn read<P: Provider>(_provider: P, response: &Value) -> Result<Self, AnswerError> {
        let Turn { rationale, calls, output_tokens } = P::turn(response)?;
        let mut answer = Self { rationale, output_tokens, ..Self::empty() };
        for called in calls {
            answer.call(called)?;
        }
        Ok(answer)
    }

    /// An answer by a program: evict what these names say, in whatever form names are offered.
    pub fn prune(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let request = Request::Prune { property: None, names: owned(names) };
        Self { calls: vec![Call { id: None, request }], ..Self::empty() }
    }

    /// Also puts `summary` in the place of what these names say.
    pub fn summarize(mut self, names: impl IntoIterator<Item = impl Into<String>>, summary: impl Into<String>) -> Self {
        let request = Request::Summarize { property: None, names: owned(names), summary: summary.into() };
        self.calls.push(Call { id: None, request });
        self
    }

    /// Gives the reason for the calls.
    pub fn with_rationale(self, rationale: impl Into<String>) -> Self {
        Self { rationale: rationale.into(), ..self }
    }

    /// Gives what the answer cost, in output tokens.
    pub fn spent(self, output_tokens: u64) -> Self {
        Self { output_tokens: Some(output_tokens), ..self }
    }

    /// The text beside the calls, one block a line; never what a provider marks as reasoning.
    pub fn rationale(&self) -> &str {
        &self.rationale
    }

    /// The calls of the two tools, in order; none when the model called neither.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// What the provider charged for the answer in output tokens, reasoning included; none where it did not say.
    pub fn output_tokens(&self) -> Option<u64> {
        self.output_tokens
    }

    /// What the calls ask for, in order.
    ///
    /// # Errors
    /// [`AnswerError::NoCall`] when there is none.
    pub(crate) fn requests(&self) -> Result<impl Iterator<Item = &Request>, AnswerError> {
        if self.calls.is_empty() { Err(AnswerError::NoCall) } else { Ok(self.calls.iter().map(|call| &call.request)) }
    }

    fn empty() -> Self {
        Self { rationale: String::new(), calls: Vec::new(), output_tokens: None }
    }

    /// Adds a call when it is one of the two tools'.
    fn call(&mut self, called: Called<'_>) -> Result<(), AnswerError> {
        let tool = match called.name {
            Some(PRUNE) => PRUNE,
            Some(SUMMARIZE) => SUMMARIZE,
            _ => return Ok(()),
        };
        let request = Reader::new(self.calls.len().saturating_add(1), tool).read(called.arguments)?;
        self.calls.push(Call { id: called.id.map(str::to_owned), request });
        Ok(())
    }
}

impl Call {
    /// The id to which the provider expects a result; none where it gave none.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// [`PRUNE`] or [`SUMMARIZE`].
    pub fn tool(&self) -> &'static str {
        match self.request {
            Request::Prune { .. } => PRUNE,
            Request::Summarize { .. } => SUMMARIZE,
        }
    }

    /// What it names, as written: unchecked, and possibly nothing.
    pub fn names(&self) -> &[String] {
        let (Request::Prune { names, .. } | Request::Summarize { names, .. }) = &self.request;
        names
    }

    /// The summary, as written.
    pub fn summary(&self) -> Option<&str> {
        match &self.request {
            Request::Prune { .. } => None,
            Request::Summarize { summary, .. } => Some(summary),
        }
    }
}

fn owned(names: impl IntoIterator<Item = impl Into<String>>) -> Vec<String> {
    names.into_iter().map(Into::into).collect()
}
