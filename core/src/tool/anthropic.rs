//! Anthropic Messages.

use serde_json::{Value, json};

use super::{
    Answer, AnswerError, Provider,
    arguments::Given,
    body::{Body, Ends},
    definition::Tool,
    limits::{self, Limits},
    sealed::Sealed,
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

    fn definition(tool: &Tool) -> Value {
        json!({
            "name": tool.name,
            "description": tool.description,
            "input_schema": tool.schema(),
            "strict": true,
        })
    }

    fn answer(response: &Value) -> Result<Answer, AnswerError> {
        let body = Body::of::<Self>(response)?;
        body.finished(body.text("/stop_reason")?, &ENDS)?;
        let mut answer = Answer::costing(body.tokens("/usage/output_tokens"));
        for block in body.list("/content")? {
            match block.get("type").and_then(Value::as_str) {
                Some("text") => answer.say(block.get("text")),
                Some("tool_use") => {
                    answer.call(block.get("id"), block.get("name"), Given::Object(block.get("input")))?;
                }
                _ => {}
            }
        }
        Ok(answer)
    }
}
