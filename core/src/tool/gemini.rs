//! Gemini `generateContent`.

use serde_json::{Value, json};

use super::{
    AnswerError, Provider,
    arguments::Given,
    body::{Body, Ends},
    limits::{self, Limits},
    sealed::Sealed,
    turn::Turn,
};

/// Gemini `generateContent`.
///
/// A definition is one entry of `functionDeclarations`, and belongs into the same tool object as the agent's own: of
/// several tool objects with declarations, some models see one and some requests are refused.
#[derive(Clone, Copy, Debug)]
pub struct Gemini;

const ENDS: Ends = Ends {
    done: &["STOP"],
    cut: &["MAX_TOKENS"],
    refused: &["SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY"],
};

impl Sealed for Gemini {}
impl Provider for Gemini {
    const NAME: &'static str = "Gemini";
    const LIMITS: &'static Limits = &limits::GEMINI;

    // The older `parameters` takes a subset of OpenAPI, without `additionalProperties`.
    fn definition(name: &str, description: &str, schema: Value) -> Value {
        json!({ "name": name, "description": description, "parametersJsonSchema": schema })
    }

    fn turn(response: &Value) -> Result<Turn<'_>, AnswerError> {
        let body = Body::of::<Self>(response)?;
        body.not_refused(body.find("/promptFeedback/blockReason"))?;
        body.finished(body.text("/candidates/0/finishReason")?, &ENDS)?;
        let mut turn = Turn::costing(tokens(body));
        for part in body.list_or_none("/candidates/0/content/parts")? {
            if part.get("thought").and_then(Value::as_bool) != Some(true) {
                turn.say(part.get("text"));
            }
            if let Some(call) = part.get("functionCall") {
                turn.call(call.get("id"), call.get("name"), Given::Object(call.get("args")));
            }
        }
        Ok(turn)
    }
}

/// Gemini counts thoughts apart from the rest of the output; the others do not.
fn tokens(body: Body<'_>) -> Option<u64> {
    let thoughts = body.tokens("/usageMetadata/thoughtsTokenCount").unwrap_or(0);
    body.tokens("/usageMetadata/candidatesTokenCount").map(|tokens| tokens.saturating_add(thoughts))
}
