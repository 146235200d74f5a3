//! A tool loop over a small budget, with a scripted model: `cargo run -p keepspan-rig --example tool_loop`.
//!
//! Prints what each request takes with the hook and without it.

use std::convert::Infallible;

use futures_executor::block_on;
use keepspan::{ContextState, Episode, Spans, Window, store::MemoryStore};
use keepspan_rig::Keepspan;
use rig_agent::AgentBuilder;
use rig_core::{
    completion::CompletionRequest,
    test_utils::{MockCompletionModel, MockTurn},
    tool::{Tool, ToolContext},
};
use serde_json::{Value, json};

/// What the agent works with.
#[derive(ContextState, Debug)]
#[context(budget = 8_000, fixed = 300, trigger = 5_000, index = 300, rationale = 200)]
pub struct Migration {
    #[instruction(roles("system", "user"))]
    rules: Spans,
    #[precondition(tools("describe_table"))]
    schema: Spans,
    #[evictable(otherwise)]
    work: Spans,
}

const SCHEMA: &str = "users.id BIGINT NOT NULL, users.email TEXT";

struct Describe;

impl Tool for Describe {
    const NAME: &'static str = "describe_table";
    type Args = Value;
    type Output = String;
    type Error = Infallible;

    fn description(&self) -> String {
        "The columns of a table.".into()
    }

    fn parameters(&self) -> Value {
        json!({ "type": "object", "properties": { "table": { "type": "string" } } })
    }

    async fn call(&self, _: &mut ToolContext, _: Value) -> Result<String, Infallible> {
        Ok(SCHEMA.into())
    }
}

struct Read;

impl Tool for Read {
    const NAME: &'static str = "read";
    type Args = Value;
    type Output = String;
    type Error = Infallible;

    fn description(&self) -> String {
        "Reads a file.".into()
    }

    fn parameters(&self) -> Value {
        json!({ "type": "object", "properties": { "file": { "type": "string" } } })
    }

    async fn call(&self, _: &mut ToolContext, args: Value) -> Result<String, Infallible> {
        Ok(format!("{}\n{}", args, "UPDATE users SET email = lower(email);\n".repeat(90)))
    }
}

fn script() -> MockCompletionModel {
    let describe = MockTurn::tool_call("c0", "describe_table", json!({ "table": "users" }));
    let read = |n| MockTurn::tool_call(format!("c{n}"), "read", json!({ "file": format!("{n}.sql") }));
    let turns = [describe].into_iter().chain((1..=8).map(read));
    MockCompletionModel::from_turns(turns.chain([MockTurn::text("All eight migrations keep `users.id`.")]))
}

/// Its messages in bytes, and whether the schema is in them.
fn measured(request: &CompletionRequest) -> (usize, bool) {
    let text = serde_json::to_string(&request.chat_history).unwrap_or_default();
    (text.len(), text.contains(SCHEMA))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let episode = Episode::new("tool-loop", "policy-1");
    let keepspan = Keepspan::new(Window::<Migration, _>::open(MemoryStore::default(), episode)?);
    let (with, without) = (script(), script());
    let agent = |model: &MockCompletionModel| {
        let agent = AgentBuilder::new(model.clone()).preamble("Migrate the users table.").default_max_turns(20);
        agent.tool(Describe).tool(Read)
    };
    block_on(agent(&without).build().prompt("Read every migration.").into_future())?;
    block_on(agent(&with).add_hook(keepspan.clone()).build().prompt("Read every migration.").into_future())?;

    println!("request  without  with keepspan  schema in it");
    for (at, (one, other)) in without.requests().iter().zip(with.requests()).enumerate() {
        let ((bytes, _), (kept, schema)) = (measured(one), measured(&other));
        println!("{at:7} {bytes:8} {kept:14}  {}", if schema { "yes" } else { "not yet" });
    }
    for tombstone in block_on(keepspan.window()).tombstones()? {
        println!("{}", tombstone.pointer());
    }
    Ok(())
}
