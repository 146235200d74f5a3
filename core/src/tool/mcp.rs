//! Model Context Protocol: the agent is a client that calls the tools of a server.

use serde_json::{Value, json};

use super::{
    Answer, AnswerError, Provider,
    arguments::Given,
    body::Body,
    definition::Tool,
    limits::{self, Limits},
    sealed::Sealed,
};

/// Model Context Protocol. A definition is one entry of `tools/list`; an answer is the `params` of one `tools/call`,
/// which says neither why nor at what cost.
#[derive(Clone, Copy, Debug)]
pub struct Mcp;

impl Sealed for Mcp {}
impl Provider for Mcp {
    const NAME: &'static str = "MCP";
    const LIMITS: &'static Limits = &limits::MCP;

    fn definition(tool: &Tool) -> Value {
        json!({ "name": tool.name, "description": tool.description, "inputSchema": tool.schema() })
    }

    fn answer(response: &Value) -> Result<Answer, AnswerError> {
        let body = Body::of::<Self>(response)?;
        body.text("/name")?;
        let mut answer = Answer::empty();
        answer.call(None, body.find("/name"), Given::Object(body.find("/arguments")))?;
        Ok(answer)
    }
}
