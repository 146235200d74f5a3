//! Gemini `generateContent`. Sources: the `Content` reference, "Function calling" and "Thought signatures" on ai.google.dev,
//! and error texts in public reports. Both spellings of a field are read, `functionCall` and `function_call`.

use std::collections::{HashMap, VecDeque};

use serde_json::Value;

use super::{
    Format, Rule,
    judge::{At, Judge, given},
    sealed::Sealed,
};
use crate::tool::{Gemini, Provider};

const ROLES: &[&str] = &["user", "model"];

/// What says something of a part's data, and is none.
const ASIDES: &[&str] = &[
    "thought",
    "thoughtSignature",
    "thought_signature",
    "videoMetadata",
    "video_metadata",
    "mediaResolution",
    "media_resolution",
    "partMetadata",
    "part_metadata",
];

const DATA: &[&str] = &[
    "text",
    "inlineData",
    "inline_data",
    "fileData",
    "file_data",
    "functionCall",
    "function_call",
    "functionResponse",
    "function_response",
    "executableCode",
    "executable_code",
    "codeExecutionResult",
    "code_execution_result",
    "toolCall",
    "tool_call",
    "toolResponse",
    "tool_response",
];

impl Sealed for Gemini {}
impl Format for Gemini {
    const NAME: &'static str = <Self as Provider>::NAME;
    const LIST: &'static str = "/contents";

    fn judge(judge: &mut Judge, body: &Value, history: &[Value]) {
        let mut elsewhere = given(body, "cachedContent") || given(body, "cached_content");
        let mut reading = Reading::default();
        let mut after_user = false;
        for (index, content) in history.iter().enumerate() {
            let at = At::message(index);
            let role = if given(content, "role") { judge.role(content, at, ROLES) } else { Some("user") };
            if role != Some("user") {
                reading.close(judge);
            }
            let parts = match content.get("parts") {
                Some(Value::Array(parts)) if !parts.is_empty() => parts.as_slice(),
                _ => {
                    judge.found(at, Rule::NoContent);
                    &[]
                }
            };
            match role {
                Some("model") => reading.model(judge, parts, at, after_user || elsewhere),
                Some(_) => reading.user(judge, parts, at, elsewhere),
                None => {}
            }
            after_user = role == Some("user");
            elsewhere = false;
        }
        reading.close(judge);
        reading.signed(judge);
    }
}

/// A field in either spelling.
fn field<'a>(part: &'a Value, camel: &str, snake: &str) -> Option<&'a Value> {
    part.get(camel).or_else(|| part.get(snake)).filter(|value| !value.is_null())
}

fn call(part: &Value) -> Option<&Value> {
    field(part, "functionCall", "function_call")
}

fn response(part: &Value) -> Option<&Value> {
    field(part, "functionResponse", "function_response")
}

fn id(of: &Value) -> Option<&str> {
    of.get("id").and_then(Value::as_str).filter(|id| !id.is_empty())
}

fn data(judge: &mut Judge, part: &Value, at: At) {
    let Some(part) = part.as_object() else { return judge.found(at, Rule::NoContent) };
    let mut has_data = false;
    for (key, _) in part.iter().filter(|(key, value)| !value.is_null() && !ASIDES.contains(&key.as_str())) {
        has_data = true;
        if !DATA.contains(&key.as_str()) {
            judge.unknown(at);
        }
    }
    if !has_data {
        judge.found(at, Rule::NoContent);
    }
}

/// What is known at a content of those before it.
#[derive(Default)]
struct Reading<'a> {
    waiting: Waiting<'a>,
    /// Of the current turn: the first call of each step and whether it is signed; whether any part of a step is.
    steps: Vec<(At, bool)>,
    signs: bool,
}

impl<'a> Reading<'a> {
    fn model(&mut self, judge: &mut Judge, parts: &'a [Value], at: At, after_user: bool) {
        let mut first = None;
        let mut signed = false;
        for (index, part) in parts.iter().enumerate() {
            let at = at.item("parts", index);
            data(judge, part, at);
            if response(part).is_some() {
                judge.found(at, Rule::WrongRole);
            }
            signed |= field(part, "thoughtSignature", "thought_signature").is_some();
            if let Some(call) = call(part) {
                first.get_or_insert((at, signed));
                self.waiting.call(judge, call, at);
            }
        }
        let Some((call, first_signed)) = first else { return };
        self.steps.push((call, first_signed));
        self.signs |= signed;
        if !after_user {
            judge.found(at, Rule::CallsAfterUser);
        }
    }

    fn user(&mut self, judge: &mut Judge, parts: &'a [Value], at: At, elsewhere: bool) {
        let mut spoke = false;
        for (index, part) in parts.iter().enumerate() {
            let at = at.item("parts", index);
            data(judge, part, at);
            if call(part).is_some() {
                judge.found(at, Rule::WrongRole);
            }
            match response(part) {
                Some(response) if !elsewhere => self.waiting.answer(judge, response, at),
                Some(_) => {}
                None => spoke = true,
            }
        }
        self.close(judge);
        if spoke {
            self.steps.clear();
            self.signs = false;
        }
    }

    fn close(&mut self, judge: &mut Judge) {
        for call in std::mem::take(&mut self.waiting).calls {
            if !call.answered {
                judge.found(call.at, Rule::Unanswered);
            }
        }
    }

    fn signed(&self, judge: &mut Judge) {
        for (at, signed) in &self.steps {
            if self.signs && !signed {
                judge.found(*at, Rule::Signature);
            }
        }
    }
}

/// The calls of one content, found by id, else by name in their order.
#[derive(Default)]
struct Waiting<'a> {
    calls: Vec<Call>,
    by_id: HashMap<&'a str, usize>,
    /// By name, and whether they have ids.
    by_name: HashMap<(&'a str, bool), VecDeque<usize>>,
}

struct Call {
    at: At,
    answered: bool,
}

impl<'a> Waiting<'a> {
    fn call(&mut self, judge: &mut Judge, call: &'a Value, at: At) {
        let Some(name) = judge.text(call, "functionCall/name", "/name", at) else { return };
        let index = self.calls.len();
        let id = id(call);
        if let Some(id) = id
            && self.by_id.insert(id, index).is_some()
        {
            judge.found(at, Rule::Duplicate);
        }
        self.by_name.entry((name, id.is_some())).or_default().push_back(index);
        self.calls.push(Call { at, answered: false });
    }

    fn answer(&mut self, judge: &mut Judge, response: &'a Value, at: At) {
        let Some(name) = judge.text(response, "functionResponse/name", "/name", at) else { return };
        let id = id(response);
        let index = match id.and_then(|id| self.by_id.get(id)) {
            Some(index) => Some(*index),
            // An id that no call has was made up for a call without.
            None => self.next(name, false).or_else(|| if id.is_none() { self.next(name, true) } else { None }),
        };
        match index.and_then(|index| self.calls.get_mut(index)) {
            Some(call) if call.answered => judge.found(at, Rule::Duplicate),
            Some(call) => call.answered = true,
            None => judge.found(at, Rule::Orphan),
        }
    }

    /// The next call of this name that waits.
    fn next(&mut self, name: &'a str, has_id: bool) -> Option<usize> {
        let queue = self.by_name.get_mut(&(name, has_id))?;
        loop {
            let index = queue.pop_front()?;
            if self.calls.get(index).is_some_and(|call| !call.answered) {
                return Some(index);
            }
        }
    }
}
