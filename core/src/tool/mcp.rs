//! Model Context Protocol: the agent is a client that calls the tools of a server.

use serde_json::{Value, json};

use super::{
    AnswerError, Provider,
    arguments::Given,
    body::Body,
    limits::{self, Limits},
    sealed::Sealed,
    turn::Turn,
};

/// Model Context Protocol. A definition is one entry of `tools/list`; an answer is the `params` of one `tools/call`,
/// which says neither why nor at what cost.
#[derive(Clone, Copy, Debug)]
pub struct Mcp;

impl Sealed for Mcp {}
impl Provider for Mcp {
    const NAME: &'static str = "MCP";
    const LIMITS: &'static Limits = &limits::MCP;

    fn definition(name: &str, description: &str, schema: Value) -> Value {
        json!({ "name": name, "description": description, "inputSchema": schema })
    }

    fn turn(response: &Value) -> Result<Turn<'_>, AnswerError> {
        let body = Body::of::<Self>(response)?;
        body.text("/name")?;
        let mut turn = Turn::costing(None);
        turn.call(None, body.find("/name"), Given::Object(body.find("/arguments")));
        Ok(turn)
    }
}
