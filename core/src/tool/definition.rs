//! The two tools, before any provider's envelope.

use serde_json::{Value, json};

use super::{Provider, sealed::Sealed};
use crate::policy::Act;

/// The most names one definition offers: below every provider's stated limit.
pub const MAX_OFFERED: usize = 200;

/// The tool that evicts what it names.
pub const PRUNE: &str = "prune_context";

/// The tool that puts a summary in the place of what it names.
pub const SUMMARIZE: &str = "summarize_context";

/// What a definition offers: [`Static`] or [`Dynamic`].
pub trait Form: Sealed + Act + Copy + 'static {
    /// The array the names stand in.
    #[doc(hidden)]
    const PROPERTY: &'static str;
    #[doc(hidden)]
    const PRUNE: &'static str;
    #[doc(hidden)]
    const SUMMARIZE: &'static str;
}

/// Lane names, from the state's type: the same bytes in every request, so a provider's prompt cache stays valid.
#[derive(Clone, Copy, Debug)]
pub struct Static;

impl Sealed for Static {}
impl Form for Static {
    const PROPERTY: &'static str = "lanes";
    const PRUNE: &'static str = "Moves the named lanes' older messages out of the context to free tokens. Each stays \
                                 stored word for word, and its id stays in the context. Name only lanes whose text no \
                                 later step needs in view. Say why in one sentence beside the call.";
    const SUMMARIZE: &'static str = "Puts your summary in the place of the named lanes' older messages to free \
                                     tokens. They stay stored word for word, and the summary names their ids. It must \
                                     be shorter than what it replaces and keep every condition and limit.";
}

/// Span ids, from the window as it is: changes with every pass, and with it a provider's prompt cache.
#[derive(Clone, Copy, Debug)]
pub struct Dynamic;

impl Sealed for Dynamic {}
impl Form for Dynamic {
    const PROPERTY: &'static str = "spans";
    const PRUNE: &'static str = "Moves the named messages out of the context to free tokens. Each stays stored word \
                                 for word, and its id stays in the context. Name only messages whose text no later \
                                 step needs in view. Say why in one sentence beside the call.";
    const SUMMARIZE: &'static str = "Puts your summary in the place of the named messages to free tokens. They stay \
                                     stored word for word, and the summary names their ids. It must be shorter than \
                                     what it replaces and keep every condition and limit.";
}

/// A tool and the names it offers.
#[derive(Clone, Debug)]
pub struct Tool {
    pub(crate) name: &'static str,
    pub(crate) description: String,
    pub(crate) property: &'static str,
    pub(crate) names: Vec<String>,
    pub(crate) summary: bool,
}

impl Tool {
    /// Offers `names` for eviction: the first [`MAX_OFFERED`], and the description says so when there are more.
    pub(crate) fn prune<F: Form>(names: Vec<String>) -> Self {
        Self::new::<F>(PRUNE, F::PRUNE, names, false)
    }

    /// As [`prune`](Self::prune), for a summary in their place.
    pub(crate) fn summarize<F: Form>(names: Vec<String>) -> Self {
        Self::new::<F>(SUMMARIZE, F::SUMMARIZE, names, true)
    }

    fn new<F: Form>(name: &'static str, description: &str, mut names: Vec<String>, summary: bool) -> Self {
        let mut description = description.to_owned();
        if names.len() > MAX_OFFERED {
            description.push_str(&format!(" {MAX_OFFERED} of {} are offered this time.", names.len()));
            names.truncate(MAX_OFFERED);
        }
        Self { name, description, property: F::PROPERTY, names, summary }
    }

    /// The definition as provider `P` wants it; nothing when there is nothing to offer, since an empty enum is no
    /// schema.
    pub(crate) fn definition<P: Provider>(&self) -> Option<Value> {
        (!self.names.is_empty()).then(|| P::definition(self.name, &self.description, self.schema()))
    }

    /// The schema of the arguments, which fits every provider: no optional field, no union, no bound.
    // Written out, since a derive turns documented variants into the `oneOf` that strict modes refuse.
    pub(super) fn schema(&self) -> Value {
        let names = json!({ "type": "array", "items": { "type": "string", "enum": self.names } });
        let (properties, required) = if self.summary {
            (json!({ self.property: names, "summary": { "type": "string" } }), json!([self.property, "summary"]))
        } else {
            (json!({ self.property: names }), json!([self.property]))
        };
        json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
    }
}
