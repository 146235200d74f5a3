//! Anthropic Messages.

use serde_json::{Value, json};

use super::{
    AnswerError, Provider,
    arguments::Given,
    body::{Body, Ends},
    limits::{self, Limits},
    sealed::Sealed,
    turn::Turn,
};

/// Anthropic Messages.
#[derive(Clone, Copy, Debug)]
pub struct Anthropic;

// `stop_sequence` is not among them: a summary that contains the sequence would lose its end.
const ENDS: Ends = Ends {
    done: &["end_turn", "tool_use"],
    cut: &["max_tokens", "model_context_window_exceeded"],
    refused: &["refusal"],
};

impl Sealed for Anthropic {}
impl Provider for Anthropic {
    const NAME: &'static str = "Anthropic";
    const LIMITS: &'static Limits = &limits::ANTHROPIC;

    fn definition(name: &str, description: &str, schema: Value) -> Value {
        json!({
            "name": name,
            "description": description,
            "input_schema": schema,
            "strict": true,
        })
    }

    fn turn(response: &Value) -> Result<Turn<'_>, AnswerError> {
        let body = Body::of::<Self>(response)?;
        body.finished(body.text("/stop_reason")?, &ENDS)?;
        let mut turn = Turn::costing(body.tokens("/usage/output_tokens"));
        for block in body.list("/content")? {
            match block.get("type").and_then(Value::as_str) {
                Some("text") => turn.say(block.get("text")),
                Some("tool_use") => {
                    turn.call(block.get("id"), block.get("name"), Given::Object(block.get("input")));
                }
                _ => {}
            }
        }
        Ok(turn)
    }
}
