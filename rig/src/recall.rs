//! The tool that brings back what a pointer stands for.

use std::{fmt, sync::Arc};

use futures_util::lock::Mutex;
use keepspan::{
    ContextState, RecallError,
    store::AsyncStore,
    tool::{Anthropic, RECALL, RecallCall},
};
use rig_core::tool::{Tool, ToolContext, ToolExecutionError};
use serde_json::{Value, json};

use crate::run::Shared;

/// rig's side of keepspan's `recall_span`: answers from the window, by [`Window::answer_recall`](keepspan::Window::answer_recall),
/// and runs nothing again (rules R2, R8). Made by [`Keepspan::recall`](crate::Keepspan::recall).
pub struct RecallSpan<C: ContextState, St> {
    pub(crate) shared: Arc<Mutex<Shared<C, St>>>,
    /// The most tokens of one answer.
    pub(crate) limit: u64,
}

impl<C: ContextState, St> fmt::Debug for RecallSpan<C, St> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecallSpan").field("state", &C::NAME).field("limit", &self.limit).finish()
    }
}

/// Why nothing was recalled. The model is told so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotRecalled {
    /// The call names no span that can be recalled, or the store failed.
    #[error(transparent)]
    Recall(#[from] RecallError),
    /// What rig handed on is no call.
    #[error("the call could not be read: call `{RECALL}` again, with the id of a span")]
    NoCall,
}

impl<C, St> Tool for RecallSpan<C, St>
where
    C: ContextState + Send + Sync + 'static,
    St: AsyncStore + 'static,
{
    const NAME: &'static str = RECALL;
    type Args = Value;
    type Output = String;
    type Error = NotRecalled;

    fn description(&self) -> String {
        definition("description").as_str().unwrap_or_default().to_owned()
    }

    fn parameters(&self) -> Value {
        definition("input_schema")
    }

    fn map_error(&self, error: NotRecalled) -> ToolExecutionError {
        let feedback = error.to_string();
        ToolExecutionError::from_error(error).with_model_feedback(feedback)
    }

    async fn call(&self, _: &mut ToolContext, args: Value) -> Result<String, NotRecalled> {
        let block = json!({ "type": "tool_use", "name": RECALL, "input": args });
        let turn = json!({ "type": "message", "stop_reason": "tool_use", "content": [block] });
        let call = RecallCall::read(Anthropic, &turn).ok().and_then(|calls| calls.into_iter().next());
        let mut shared = self.shared.lock().await;
        let reply = shared.window.answer_recall(&call.ok_or(NotRecalled::NoCall)?, self.limit).await?;
        let text = reply.text().to_owned();
        shared.replies.push(reply);
        Ok(text)
    }
}

/// A part of the tool's definition.
fn definition(part: &str) -> Value {
    RecallCall::tool(Anthropic).get(part).cloned().unwrap_or_default()
}
