//! Gemini `generateContent`. Both spellings of a field are read, `functionCall` and `function_call`.

use serde_json::Value;

use super::{At, Files, Reading, Said, only_text, text};
use crate::{
    NewSpan,
    tool::Gemini,
    wire::{
        Format, ImportError,
        render::{self, Shape},
        validate::Format as _,
    },
};

impl Format for Gemini {
    const SHAPE: &'static Shape = &render::GEMINI;

    fn read(value: &Value, reading: &mut Reading) -> Result<(), ImportError> {
        if let Value::Array(list) = value {
            return reading.each(list, content);
        }
        if value.get("parts").is_some() {
            return content(reading, value);
        }
        if let Some(answer) = value.pointer("/candidates/0") {
            // What was blocked, or stopped before it began, has no parts.
            let said = answer.get("content").filter(|content| parts(content).next().is_some());
            return said.map_or(Ok(()), |said| content(reading, said));
        }
        let list = value.get("contents").and_then(Value::as_array);
        let list = list.ok_or(ImportError::NoHistory { format: Self::NAME, list: "contents" })?;
        if value.get("cachedContent").or_else(|| value.get("cached_content")).is_some_and(|cached| !cached.is_null()) {
            reading.elsewhere = Some("cachedContent");
        }
        if let Some(said) = field(value, "systemInstruction", "system_instruction") {
            system(reading, said)?;
        }
        reading.each(list, content)
    }

    fn calls(content: &Value, each: &mut dyn FnMut(&str, &str)) {
        for call in parts(content).filter_map(|part| field(part, "functionCall", "function_call")) {
            let name = text(call, "name").unwrap_or("unknown");
            // Without an id, a result is found by its name.
            each(id(call).unwrap_or(name), name);
        }
    }
}

/// System text, which may be one part, or one text, in place of a list of parts.
fn system(reading: &mut Reading, said: &Value) -> Result<(), ImportError> {
    match said.get("parts").unwrap_or(said) {
        Value::Array(parts) if !parts.is_empty() => {
            return reading.message(said, "parts", Files::AsText, NewSpan::notice, |reading, at| {
                let said = at.value.get("text").map_or(Said::Whole, Said::Text);
                reading.take(at.aside(), said, Files::AsText, NewSpan::notice);
            });
        }
        Value::String(_) => reading.take(At::element(said).aside(), Said::Text(said), Files::AsText, NewSpan::notice),
        _ => reading.take(At::element(said).aside(), Said::Whole, Files::AsText, NewSpan::notice),
    }
    Ok(())
}

fn field<'v>(of: &'v Value, camel: &str, snake: &str) -> Option<&'v Value> {
    of.get(camel).or_else(|| of.get(snake)).filter(|value| !value.is_null())
}

fn id(of: &Value) -> Option<&str> {
    text(of, "id").filter(|id| !id.is_empty())
}

fn parts(content: &Value) -> impl Iterator<Item = &Value> {
    content.get("parts").and_then(Value::as_array).into_iter().flatten()
}

fn content(reading: &mut Reading, content: &Value) -> Result<(), ImportError> {
    if !content.is_object() {
        return Err(reading.wrong("it is no object"));
    }
    reading.readable(content, "parts")?;
    match text(content, "role") {
        None | Some("user" | "function") => {
            return reading.message(content, "parts", Files::Counted, NewSpan::human, user);
        }
        Some("model") => model(reading, content),
        Some(_) => return Err(reading.wrong("its `role` is none of user, model and function")),
    }
    Ok(())
}

fn user(reading: &mut Reading, at: At<'_>) {
    let part = at.value;
    if let Some(response) = field(part, "functionResponse", "function_response") {
        return result(reading, at, response);
    }
    let is = |camel, snake| field(part, camel, snake).is_some();
    match part.get("text") {
        Some(said) => reading.take(at, Said::Text(said), Files::AsText, NewSpan::human),
        None if is("inlineData", "inline_data") || is("fileData", "file_data") => {
            reading.take(at, Said::Whole, Files::Counted, NewSpan::human)
        }
        None => reading.take_opaque(at, Files::Counted, NewSpan::human),
    }
}

fn result(reading: &mut Reading, at: At<'_>, response: &Value) {
    let name = text(response, "name").unwrap_or_default();
    let key = match id(response).filter(|id| reading.waits(id)) {
        Some(id) => id.into(),
        None => reading.called(name).unwrap_or_else(|| name.into()),
    };
    let told = response.get("response");
    let fields = told.and_then(Value::as_object);
    let only = fields.filter(|fields| fields.len() == 1).and_then(|fields| fields.iter().next());
    let said = match (only, told) {
        (Some((_, text @ Value::String(said))), _) if !said.is_empty() => Said::Text(text),
        (_, Some(told)) => Said::Json(told),
        _ => Said::Whole,
    };
    let failed = only.is_some_and(|(field, _)| field == "error");
    reading.result(at, said, &key, Some(name), failed);
}

/// Fields of a model's parts that are known.
const KNOWN: &[&str] = &[
    "text",
    "thought",
    "thoughtSignature",
    "thought_signature",
    "functionCall",
    "function_call",
    "executableCode",
    "executable_code",
    "codeExecutionResult",
    "code_execution_result",
    "inlineData",
    "inline_data",
    "fileData",
    "file_data",
    "toolCall",
    "tool_call",
    "toolResponse",
    "tool_response",
    "videoMetadata",
    "partMetadata",
    "mediaResolution",
];

fn model(reading: &mut Reading, content: &Value) {
    let parts = || parts(content);
    let only = content.get("parts").and_then(|list| only_text(list, ""));
    let thought = parts().any(|part| part.get("thought").is_some());
    let said = only.filter(|_| !thought).map_or(Said::Whole, Said::Text);
    let seal = parts().any(|part| field(part, "thoughtSignature", "thought_signature").is_some());
    let known =
        |part: &Value| part.as_object().is_some_and(|part| part.keys().all(|key| KNOWN.contains(&key.as_str())));
    let opaque = !parts().all(known);
    reading.model(content, said, Files::AsText, seal, None);
    if opaque {
        reading.is_opaque();
    }
}
