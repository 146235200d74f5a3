//! A frame: the JSON around a span's text, kept so that what was imported is rendered as it was.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Media, render::OPENAI_RESPONSES};
use crate::{Content, Origin, SpanId};

/// How a span stood in the request that it was imported from.
///
/// `frame` is the name of its format in one letter, and JSON with marks that JSON has nowhere: see [`Frame`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Wire {
    pub(super) frame: Arc<str>,
    /// Nobody here can read it.
    pub(super) opaque: bool,
}

impl Wire {
    /// The images and files of a span that enters again, as when it was imported: those in what a model says are text, except
    /// in a format where they are items of their own.
    pub(crate) fn media(&self, origin: Origin, content: &Content) -> Option<Media> {
        let has_files = origin != Origin::Model || self.frame.starts_with(OPENAI_RESPONSES.letter);
        let text = content.as_text().filter(|_| has_files && self.frame.contains(JSON))?;
        Media::of(&serde_json::from_str(text).ok()?)
    }
}

/// The frames of an episode.
#[derive(Debug, Default)]
pub(crate) struct Wires {
    all: BTreeMap<SpanId, Wire>,
    opaque: BTreeSet<SpanId>,
}

impl Wires {
    pub(crate) fn enter(&mut self, span: SpanId, wire: Wire) {
        if wire.opaque {
            self.opaque.insert(span);
        }
        self.all.insert(span, wire);
    }

    /// The spans that were imported, oldest first.
    pub(crate) fn spans(&self) -> impl Iterator<Item = SpanId> {
        self.all.keys().copied()
    }

    pub(crate) fn get(&self, span: SpanId) -> Option<&Wire> {
        self.all.get(&span)
    }

    pub(crate) fn is_opaque(&self, span: SpanId) -> bool {
        !self.opaque.is_empty() && self.opaque.contains(&span)
    }
}

/// Where the span's text goes, as a JSON string.
pub(super) const TEXT: &str = "\0";
/// Where the span's text goes, which is JSON.
pub(super) const JSON: &str = "\x01";
/// Where a message has its blocks.
pub(super) const BLOCKS: &str = "[\x02]";
/// Ends the message; a block follows. Without a message, the block goes on in the one before it.
pub(super) const BLOCK: &str = "\x03";
/// Says that it stands beside the list: a system prompt.
pub(super) const ASIDE: &str = "\x04";
/// Says that the text alone was the whole list.
pub(super) const SOLE: &str = "\x05";

/// Most bytes of a frame: what is longer says something, so it is counted and hashed with the text.
pub(super) const LONGEST: usize = 256;

/// Fields that name things. A frame stays in the log when the text is redacted, so no other has a value there.
const NAMES: &[&str] = &[
    "role",
    "type",
    "name",
    "id",
    "status",
    "phase",
    "tool_call_id",
    "tool_use_id",
    "call_id",
    "is_error",
    "cache_control",
    "ttl",
    "thought",
];

/// Fields that the text is within.
const AROUND: &[&str] =
    &["content", "text", "parts", "output", "result", "error", "response", "functionResponse", "function_response"];

/// Whether JSON around a hole says nothing but what the format asks for: names, what the hole is within, and fields without a
/// value.
pub(super) fn is_plain(value: &Value, hole: &Value) -> bool {
    match value {
        _ if std::ptr::eq(value, hole) || is_blank(value) => true,
        Value::Array(values) => values.iter().all(|value| is_plain(value, hole)),
        Value::Object(fields) => fields.iter().all(|(name, value)| {
            let is_name = NAMES.contains(&name.as_str());
            match value {
                _ if std::ptr::eq(value, hole) || is_blank(value) => true,
                Value::Array(_) | Value::Object(_) => {
                    (is_name || AROUND.contains(&name.as_str())) && is_plain(value, hole)
                }
                _ => is_name,
            }
        }),
        _ => false,
    }
}

fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(values) => values.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

/// How deep JSON may be nested: around it, a request stays below what parsers take.
const DEEPEST: usize = 100;

/// Whether it is nested deeper than that.
pub(super) fn is_too_deep(value: &Value) -> bool {
    fn deeper(value: &Value, left: usize) -> bool {
        let Some(left) = left.checked_sub(1) else { return true };
        match value {
            Value::Array(values) => values.iter().any(|value| deeper(value, left)),
            Value::Object(fields) => fields.values().any(|value| deeper(value, left)),
            _ => false,
        }
    }
    deeper(value, DEEPEST)
}

/// A frame, taken apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'f> {
    /// The format that it is of.
    pub(super) format: char,
    pub(super) aside: bool,
    pub(super) sole: bool,
    /// Whether it is a block, and not a whole element of the list.
    pub(super) is_block: bool,
    /// Before and after the blocks of the message that a block begins.
    pub(super) message: Option<(&'f str, &'f str)>,
    pub(super) before: &'f str,
    pub(super) after: &'f str,
    /// Whether the text is JSON, and goes in as it is.
    pub(super) is_json: bool,
}

impl<'f> Frame<'f> {
    /// `None` for what no import wrote.
    pub(super) fn parse(frame: &'f str) -> Option<Self> {
        let mut rest = frame.chars();
        let format = rest.next()?;
        let rest = rest.as_str();
        let (aside, rest) = rest.strip_prefix(ASIDE).map_or((false, rest), |rest| (true, rest));
        let (sole, rest) = rest.strip_prefix(SOLE).map_or((false, rest), |rest| (true, rest));
        let (is_block, message, rest) = match rest.split_once(BLOCK) {
            None => (false, None, rest),
            Some(("", block)) => (true, None, block),
            Some((message, block)) => {
                let (before, after) = message.split_once('\x02')?;
                (true, Some((before, after)), block)
            }
        };
        let (hole, is_json) = if rest.contains(JSON) { (JSON, true) } else { (TEXT, false) };
        let (before, after) = rest.split_once(hole)?;
        Some(Self { format, aside, sole, is_block, message, before, after, is_json })
    }
}

/// Writes JSON with marks in place of some of its values, which are in its order.
pub(super) fn write(value: &Value, mut holes: &[(&Value, &str)], out: &mut Vec<u8>) {
    marked(value, &mut holes, out);
}

fn marked(value: &Value, holes: &mut &[(&Value, &str)], out: &mut Vec<u8>) {
    let Some(((hole, mark), rest)) = holes.split_first() else { return push(value, out) };
    match value {
        _ if std::ptr::eq(*hole, value) => {
            out.extend_from_slice(mark.as_bytes());
            *holes = rest;
        }
        Value::Array(values) => {
            out.push(b'[');
            for (at, value) in values.iter().enumerate() {
                separate(at, out);
                marked(value, holes, out);
            }
            out.push(b']');
        }
        Value::Object(fields) => {
            out.push(b'{');
            for (at, (name, value)) in fields.iter().enumerate() {
                separate(at, out);
                quoted(name, out);
                out.push(b':');
                marked(value, holes, out);
            }
            out.push(b'}');
        }
        _ => push(value, out),
    }
}

fn separate(at: usize, out: &mut Vec<u8>) {
    if at > 0 {
        out.push(b',');
    }
}

/// Appends a text as a JSON string.
pub(super) fn quoted(text: &str, out: &mut Vec<u8>) {
    push(text, out);
}

fn push(value: &(impl Serialize + ?Sized), out: &mut Vec<u8>) {
    // A buffer in memory takes everything, and there is no value here that JSON has not.
    let _ = serde_json::to_writer(out, value);
}

/// What was written, as text.
pub(super) fn as_text(written: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(written).map_or_else(|_| String::from_utf8_lossy(written), Cow::Borrowed)
}

/// As [`as_text`], of one's own.
pub(super) fn text(written: Vec<u8>) -> String {
    String::from_utf8(written).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
