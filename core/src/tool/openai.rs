//! OpenAI's two interfaces; many servers speak the first.

use serde_json::{Value, json};

use super::{
    AnswerError, Provider,
    arguments::Given,
    body::{Body, Ends},
    limits::{self, Limits},
    sealed::Sealed,
    turn::Turn,
};

/// OpenAI Chat Completions.
#[derive(Clone, Copy, Debug)]
pub struct OpenAiChat;

/// OpenAI Responses.
#[derive(Clone, Copy, Debug)]
pub struct OpenAiResponses;

const CHAT: Ends = Ends { done: &["stop", "tool_calls"], cut: &["length"], refused: &["content_filter"] };

// `incomplete` says why only beside it, so the reasons stand in the same lists.
const RESPONSES: Ends = Ends { done: &["completed"], cut: &["max_output_tokens"], refused: &["content_filter"] };

impl Sealed for OpenAiChat {}
impl Provider for OpenAiChat {
    const NAME: &'static str = "OpenAI Chat";
    const LIMITS: &'static Limits = &limits::OPENAI_CHAT;

    fn definition(name: &str, description: &str, schema: Value) -> Value {
        json!({
            "type": "function",
            "function": {
                "name": name,
                "description": description,
                "parameters": schema,
                "strict": true,
            },
        })
    }

    fn turn(response: &Value) -> Result<Turn<'_>, AnswerError> {
        let body = Body::of::<Self>(response)?;
        body.finished(body.text("/choices/0/finish_reason")?, &CHAT)?;
        let mut turn = Turn::costing(body.tokens("/usage/completion_tokens"));
        message(&mut turn, body, body.at("/choices/0/message")?)?;
        for call in body.list_or_none("/choices/0/message/tool_calls")? {
            turn.call(call.get("id"), call.pointer("/function/name"), Given::Text(call.pointer("/function/arguments")));
        }
        Ok(turn)
    }
}

impl Sealed for OpenAiResponses {}
impl Provider for OpenAiResponses {
    const NAME: &'static str = "OpenAI Responses";
    const LIMITS: &'static Limits = &limits::OPENAI_RESPONSES;

    fn definition(name: &str, description: &str, schema: Value) -> Value {
        json!({
            "type": "function",
            "name": name,
            "description": description,
            "parameters": schema,
            "strict": true,
        })
    }

    fn turn(response: &Value) -> Result<Turn<'_>, AnswerError> {
        let body = Body::of::<Self>(response)?;
        let reason = body.find("/incomplete_details/reason").and_then(Value::as_str);
        body.finished(reason.map_or_else(|| body.text("/status"), Ok)?, &RESPONSES)?;
        let mut turn = Turn::costing(body.tokens("/usage/output_tokens"));
        for item in body.list("/output")? {
            match item.get("type").and_then(Value::as_str) {
                Some("message") => message(&mut turn, body, item)?,
                Some("function_call") => {
                    body.finished(item.get("status").and_then(Value::as_str).unwrap_or("completed"), &RESPONSES)?;
                    turn.call(item.get("call_id"), item.get("name"), Given::Text(item.get("arguments")));
                }
                _ => {}
            }
        }
        Ok(turn)
    }
}

/// Takes a message's text: one string, or parts with text or a refusal.
fn message(turn: &mut Turn<'_>, body: Body<'_>, message: &Value) -> Result<(), AnswerError> {
    body.not_refused(message.get("refusal"))?;
    let content = message.get("content");
    turn.say(content);
    for part in content.and_then(Value::as_array).into_iter().flatten() {
        body.not_refused(part.get("refusal"))?;
        turn.say(part.get("text"));
    }
    Ok(())
}
