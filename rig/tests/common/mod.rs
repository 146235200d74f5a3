//! An agent with scripted turns and three tools.
#![allow(
    dead_code,
    missing_docs,
    clippy::unwrap_used,
    clippy::arithmetic_side_effects,
    reason = "each test uses a part of it, and fails where it panics"
)]

use std::convert::Infallible;

use keepspan::{
    ContextState, Digest, Episode, EpisodeId, NewSpan, Spans, Window,
    store::{AsyncStore, Batch, MemoryStore, Store, StoreError},
};
use keepspan_rig::Keepspan;
use rig_agent::{Agent, AgentBuilder};
use rig_core::{
    completion::{AssistantContent, CompletionRequest},
    message::{Message, ToolName, ToolResultContent, UserContent},
    test_utils::{MockCompletionModel, MockTurn},
    tool::{Tool, ToolContext, ToolExecutionError},
    transcript::validate_canonical,
};
use serde_json::{Value, json};

#[derive(ContextState, Debug)]
#[context(budget = 6_000, fixed = 600, trigger = 4_000, index = 300, rationale = 200, keep = 0)]
pub struct Coder {
    #[instruction(roles("system", "user"))]
    pub rules: Spans,
    #[precondition(tools("describe_table"))]
    pub schema: Spans,
    #[negative_result(on_error)]
    pub failed: Spans,
    #[evictable(otherwise)]
    pub work: Spans,
    #[rationale]
    pub decisions: Spans,
}

pub const SCHEMA: &str = "users.id BIGINT NOT NULL, users.email TEXT";

pub fn window<St: Store>(store: St) -> Window<Coder, St> {
    Window::open(store, Episode::new("e", "p").trust_estimates()).unwrap()
}

pub struct Describe;
impl Tool for Describe {
    const NAME: &'static str = "describe_table";
    type Args = Value;
    type Output = String;
    type Error = Infallible;
    fn description(&self) -> String {
        "Describes a table.".into()
    }
    fn parameters(&self) -> Value {
        json!({ "type": "object", "properties": {} })
    }
    async fn call(&self, _: &mut ToolContext, _: Value) -> Result<String, Infallible> {
        Ok(SCHEMA.into())
    }
}

/// About `tokens` tokens of text.
pub fn page(n: u64, tokens: usize) -> String {
    format!("file {n}\n{}", "let x = 1;\n".repeat(tokens / 4))
}

pub struct Read;
impl Tool for Read {
    const NAME: &'static str = "read";
    type Args = Value;
    type Output = String;
    type Error = Infallible;
    fn description(&self) -> String {
        "Reads a file.".into()
    }
    fn parameters(&self) -> Value {
        json!({ "type": "object", "properties": { "n": { "type": "integer" }, "tokens": { "type": "integer" } } })
    }
    async fn call(&self, _: &mut ToolContext, args: Value) -> Result<String, Infallible> {
        let tokens = args["tokens"].as_u64().unwrap_or(1_000);
        Ok(page(args["n"].as_u64().unwrap_or_default(), usize::try_from(tokens).unwrap()))
    }
}

pub struct Silent;
impl Tool for Silent {
    const NAME: &'static str = "silent";
    type Args = Value;
    type Output = String;
    type Error = Infallible;
    fn description(&self) -> String {
        "Says nothing.".into()
    }
    fn parameters(&self) -> Value {
        json!({ "type": "object", "properties": {} })
    }
    async fn call(&self, _: &mut ToolContext, _: Value) -> Result<String, Infallible> {
        Ok(String::new())
    }
}

pub struct Broken;
impl Tool for Broken {
    const NAME: &'static str = "broken";
    type Args = Value;
    type Output = String;
    type Error = ToolExecutionError;
    fn description(&self) -> String {
        "Fails.".into()
    }
    fn parameters(&self) -> Value {
        json!({ "type": "object", "properties": {} })
    }
    async fn call(&self, _: &mut ToolContext, _: Value) -> Result<String, ToolExecutionError> {
        Err(ToolExecutionError::other("permission denied").with_model_feedback("permission denied on /etc/shadow"))
    }
}

pub fn read(id: &str, n: u64) -> MockTurn {
    MockTurn::tool_call(id, "read", json!({ "n": n }))
}

pub fn call(id: &str, name: &str, args: Value) -> AssistantContent {
    AssistantContent::tool_call(id, ToolName::new(name).unwrap(), args)
}

pub fn agent<St: Store + 'static>(model: &MockCompletionModel, keepspan: &Keepspan<Coder, St>) -> Agent {
    AgentBuilder::new(model.clone())
        .preamble("Migrate the users table.")
        .default_max_turns(20)
        .add_hook(keepspan.clone())
        .tool(Describe)
        .tool(Read)
        .tool(Broken)
        .tool(Silent)
        .tool(keepspan.recall(2_000))
        .build()
}

/// Every text of a request's messages, in order.
pub fn texts(request: &CompletionRequest) -> Vec<String> {
    let result = |part: &ToolResultContent| match part {
        ToolResultContent::Text(text) => text.text.clone(),
        other => serde_json::to_string(other).unwrap(),
    };
    let mut texts = Vec::new();
    for message in &request.chat_history {
        match message {
            Message::System { content } => texts.push(content.clone()),
            Message::User { content } => texts.extend(content.iter().flat_map(|block| match block {
                UserContent::Text(text) => vec![text.text.clone()],
                UserContent::ToolResult(of) => of.content.iter().map(result).collect(),
                other => vec![serde_json::to_string(other).unwrap()],
            })),
            Message::Assistant(turn) => texts.extend(turn.content.iter().map(|block| match block {
                AssistantContent::Text(text) => text.text.clone(),
                other => serde_json::to_string(other).unwrap(),
            })),
        }
    }
    texts
}

/// The requests that were sent, each of which is a conversation.
pub fn sent(model: &MockCompletionModel) -> Vec<CompletionRequest> {
    let requests = model.requests();
    for request in &requests {
        validate_canonical(&request.chat_history).unwrap();
    }
    requests
}

/// What the window holds, as lane and text.
pub fn held<St>(window: &Window<Coder, St>) -> Vec<(&'static str, String)> {
    window.render().iter().map(|m| (m.lane(), m.content().as_text().unwrap_or("(bytes)").to_owned())).collect()
}

/// A store that can be told to fail.
#[derive(Default)]
pub struct Failing {
    pub inner: MemoryStore,
    pub down: std::sync::atomic::AtomicBool,
    /// Writes the next batch, and does not say so.
    pub silent: std::sync::atomic::AtomicBool,
}

impl Store for Failing {
    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        if self.down.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(StoreError::backend("no space left on device"));
        }
        Store::commit(&self.inner, batch)?;
        match self.silent.swap(false, std::sync::atomic::Ordering::Relaxed) {
            true => Err(StoreError::Unacknowledged),
            false => Ok(()),
        }
    }
    fn get(&self, digest: &Digest) -> Result<Vec<u8>, StoreError> {
        Store::get(&self.inner, digest)
    }
    fn read(&self, episode: &EpisodeId, from: u64, most: u64) -> Result<Vec<Vec<u8>>, StoreError> {
        Store::read(&self.inner, episode, from, most)
    }
    fn length(&self, episode: &EpisodeId) -> Result<u64, StoreError> {
        Store::length(&self.inner, episode)
    }
    fn holders(&self, signatures: &[Digest]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        Store::holders(&self.inner, signatures)
    }
}

/// A store that answers later, and once not at all.
#[derive(Default)]
pub struct Later {
    pub inner: MemoryStore,
    /// In so many commits; 0 is never.
    pub stuck: std::sync::Arc<std::sync::atomic::AtomicUsize>,
    /// Whether the batch is written all the same.
    pub writes: bool,
}

impl AsyncStore for Later {
    async fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        let left = self.stuck.load(std::sync::atomic::Ordering::Relaxed);
        self.stuck.store(left.saturating_sub(1), std::sync::atomic::Ordering::Relaxed);
        if left != 1 || self.writes {
            AsyncStore::commit(&self.inner, batch).await?;
        }
        if left == 1 { std::future::pending().await } else { Ok(()) }
    }
    async fn get_many(&self, digests: &[Digest]) -> Result<Vec<Vec<u8>>, StoreError> {
        AsyncStore::get_many(&self.inner, digests).await
    }
    async fn read(&self, episode: &EpisodeId, from: u64, most: u64) -> Result<Vec<Vec<u8>>, StoreError> {
        AsyncStore::read(&self.inner, episode, from, most).await
    }
    async fn length(&self, episode: &EpisodeId) -> Result<u64, StoreError> {
        AsyncStore::length(&self.inner, episode).await
    }
    async fn holders(&self, signatures: &[Digest]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        AsyncStore::holders(&self.inner, signatures).await
    }
}

pub fn human(text: &str) -> NewSpan {
    NewSpan::human(text.to_owned())
}
