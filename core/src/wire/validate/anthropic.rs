//! Anthropic Messages. Sources: "Messages", "Handle tool calls", "Parallel tool use", "Extended thinking", "Compaction" and
//! "Mid-conversation system messages" on platform.claude.com, and error texts in public reports. Consecutive messages of
//! one role are one turn (documented), but results are looked for in the very next message.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    Format, Rule,
    calls::Calls,
    judge::{At, Judge, Kinds},
    sealed::Sealed,
};
use crate::tool::{Anthropic, Provider};

const ROLES: &[&str] = &["user", "assistant", "system"];
const ASSISTANT: &[&str] = &["assistant"];
/// Its types hold for both roles; which of these an assistant can have is not documented.
const EITHER: &[&str] = &["user", "assistant"];

const BLOCKS: &Kinds = &[
    ("text", ROLES),
    ("image", EITHER),
    ("document", EITHER),
    ("search_result", EITHER),
    ("container_upload", EITHER),
    ("tool_result", &["user"]),
    ("tool_use", ASSISTANT),
    ("thinking", ASSISTANT),
    ("redacted_thinking", ASSISTANT),
    ("compaction", ASSISTANT),
    ("server_tool_use", ASSISTANT),
    ("web_search_tool_result", ASSISTANT),
    ("web_fetch_tool_result", ASSISTANT),
    ("code_execution_tool_result", ASSISTANT),
    ("bash_code_execution_tool_result", ASSISTANT),
    ("text_editor_code_execution_tool_result", ASSISTANT),
    ("tool_search_tool_result", ASSISTANT),
    ("advisor_tool_result", ASSISTANT),
    ("mcp_tool_use", ASSISTANT),
    ("mcp_tool_result", ASSISTANT),
];

impl Sealed for Anthropic {}
impl Format for Anthropic {
    const NAME: &'static str = <Self as Provider>::NAME;
    const LIST: &'static str = "/messages";

    fn judge(judge: &mut Judge, body: &Value, history: &[Value]) {
        let mut reading = Reading::new();
        for (index, message) in history.iter().enumerate() {
            let at = At::message(index);
            let Some(role) = judge.role(message, at, ROLES) else {
                reading.ended(judge);
                continue;
            };
            let last = index.checked_add(1) == Some(history.len());
            if index == 0 && role != "user" && !compacted(message) {
                judge.found(at, Rule::UserFirst);
            }
            let blocks = content(judge, message, at, role == "assistant" && last);
            if role == "assistant" {
                reading.assistant(judge, blocks, at);
                if last {
                    trimmed(judge, message, at);
                }
            } else {
                reading.ended(judge);
                reading.user(judge, blocks, at, role);
            }
        }
        reading.ended(judge);
        reading.calls.close(judge);
        if body.pointer("/thinking/type").and_then(Value::as_str) == Some("enabled") {
            reading.thought(judge);
        }
    }
}

/// Whether what came before a message no longer counts.
fn compacted(message: &Value) -> bool {
    let blocks = message.get("content").and_then(Value::as_array);
    blocks.is_some_and(|blocks| blocks.iter().any(|block| kind(block) == Some("compaction")))
}

fn kind(block: &Value) -> Option<&str> {
    block.get("type").and_then(Value::as_str)
}

/// Judges that there is content; its blocks, none of them where it is one text.
fn content<'a>(judge: &mut Judge, message: &'a Value, at: At, may_be_empty: bool) -> Option<&'a [Value]> {
    match message.get("content") {
        Some(Value::String(text)) => {
            if text.is_empty() && !may_be_empty {
                judge.found(at, Rule::NoContent);
            } else if !text.is_empty() && text.trim().is_empty() {
                judge.found(at, Rule::BlankText);
            }
            None
        }
        Some(Value::Array(blocks)) if !blocks.is_empty() || may_be_empty => {
            let blank = |block| text(block).is_some_and(|text| !text.is_empty() && text.trim().is_empty());
            if !blocks.is_empty() && blocks.iter().all(blank) {
                judge.found(at, Rule::BlankText);
            }
            Some(blocks)
        }
        _ => {
            judge.found(at, Rule::NoContent);
            Some(&[])
        }
    }
}

fn text(block: &Value) -> Option<&str> {
    if kind(block) == Some("text") { block.get("text").and_then(Value::as_str) } else { None }
}

fn trimmed(judge: &mut Judge, message: &Value, at: At) {
    let (end, at) = match message.get("content") {
        Some(Value::String(text)) => (Some(text.as_str()), at),
        Some(Value::Array(blocks)) => {
            let Some((index, block)) = blocks.iter().enumerate().next_back() else { return };
            (text(block), at.item("content", index))
        }
        _ => return,
    };
    // All white space is another violation.
    if end.is_some_and(|end| end.ends_with(char::is_whitespace) && !end.trim().is_empty()) {
        judge.found(at, Rule::TrailingSpace);
    }
}

/// What is known at a message of those before it.
struct Reading<'a> {
    ids: HashSet<&'a str>,
    calls: Calls<&'a str>,
    /// Calls that the provider answers itself.
    server: Calls<&'a str>,
    /// In the assistant turn that goes on: whether there was a call, and its last block.
    called: bool,
    last: Option<(At, bool)>,
    /// Since the user spoke: the assistant's first block that is known, a compaction aside, and whether it is thinking;
    /// whether there was a call.
    first: Option<(At, bool)>,
    working: bool,
}

impl<'a> Reading<'a> {
    fn new() -> Self {
        Self {
            ids: HashSet::new(),
            calls: Calls::new(),
            server: Calls::new(),
            called: false,
            last: None,
            first: None,
            working: false,
        }
    }

    fn assistant(&mut self, judge: &mut Judge, blocks: Option<&'a [Value]>, at: At) {
        let Some(blocks) = blocks else {
            self.said(judge, at);
            self.last = Some((at, false));
            self.first.get_or_insert((at, false));
            return;
        };
        for (index, block) in blocks.iter().enumerate() {
            let at = at.item("content", index);
            let kind = judge.kind(block, at, BLOCKS, "assistant");
            match kind {
                Some("text") => {
                    written(judge, block, at);
                    self.said(judge, at);
                }
                Some("thinking") => {
                    judge.needs(block.get("thinking").is_some_and(Value::is_string), "thinking", at);
                    judge.text(block, "signature", "/signature", at);
                }
                Some("redacted_thinking") => {
                    judge.text(block, "data", "/data", at);
                }
                Some("tool_use") => {
                    if let Some(id) = self.called(judge, block, at) {
                        self.calls.call(judge, id, at);
                    }
                    (self.called, self.working) = (true, true);
                }
                Some("server_tool_use" | "mcp_tool_use") => {
                    if let Some(id) = self.called(judge, block, at) {
                        self.server.call(judge, id, at);
                    }
                }
                Some(kind) if kind.ends_with("_tool_result") => {
                    if let Some(id) = judge.text(block, "tool_use_id", "/tool_use_id", at) {
                        self.server.answer(judge, &id, at);
                    }
                }
                _ => {}
            }
            let thinking = matches!(kind, Some("thinking" | "redacted_thinking"));
            self.last = Some((at, thinking));
            if kind.is_some_and(|kind| kind != "compaction") {
                self.first.get_or_insert((at, thinking));
            }
        }
    }

    /// A call's id, if it is a new one.
    fn called(&mut self, judge: &mut Judge, block: &'a Value, at: At) -> Option<&'a str> {
        judge.text(block, "name", "/name", at);
        judge.needs(block.get("input").is_some_and(Value::is_object), "input", at);
        let id = judge.text(block, "id", "/id", at)?;
        judge.needs(id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)), "id", at);
        if self.ids.insert(id) {
            return Some(id);
        }
        judge.found(at, Rule::Duplicate);
        None
    }

    fn said(&self, judge: &mut Judge, at: At) {
        if self.called {
            judge.found(at, Rule::CallsLast);
        }
    }

    /// The assistant turn is over, if there was one.
    fn ended(&mut self, judge: &mut Judge) {
        self.called = false;
        if let Some((at, true)) = self.last.take() {
            judge.found(at, Rule::ThinkingLast);
        }
    }

    fn user(&mut self, judge: &mut Judge, blocks: Option<&'a [Value]>, at: At, role: &str) {
        let mut spoke = blocks.is_none();
        for (index, block) in blocks.into_iter().flatten().enumerate() {
            let at = at.item("content", index);
            match judge.kind(block, at, BLOCKS, role) {
                Some("tool_result") => {
                    if spoke {
                        judge.found(at, Rule::ResultsFirst);
                    }
                    if let Some(id) = judge.text(block, "tool_use_id", "/tool_use_id", at) {
                        self.calls.answer(judge, &id, at);
                    }
                }
                kind => {
                    spoke = true;
                    if kind == Some("text") {
                        written(judge, block, at);
                    }
                }
            }
        }
        self.calls.close(judge);
        if spoke && role == "user" {
            self.server.close(judge);
            (self.first, self.working) = (None, false);
        }
    }

    fn thought(&self, judge: &mut Judge) {
        if let Some((at, false)) = self.first.filter(|_| self.working) {
            judge.found(at, Rule::ThinkingFirst);
        }
    }
}

fn written(judge: &mut Judge, block: &Value, at: At) {
    match block.get("text").and_then(Value::as_str) {
        None => judge.needs(false, "text", at),
        Some("") => judge.found(at, Rule::EmptyText),
        Some(_) => {}
    }
}
