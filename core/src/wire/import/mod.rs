//! Import: from a provider's JSON to spans, each with the frame that it stood in.

mod anthropic;
mod gemini;
mod openai_chat;
mod openai_responses;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use serde_json::Value;

use super::{
    Format, ImportError, Media, Wire,
    frame::{self, ASIDE, BLOCK, BLOCKS, JSON, LONGEST, SOLE, TEXT},
};
use crate::{Content, NewSpan, SpanId};

/// What an import brought into a window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "what could not be read is listed here: look at it once"]
#[non_exhaustive]
pub struct Imported {
    /// Every span, in the order of the request.
    pub spans: Vec<SpanId>,
    /// Those of them that hold blocks of unknown type, or what a provider compacted: no pass takes them.
    pub opaque: Vec<SpanId>,
    /// Results whose call is not in the window, as [`Window::orphans`](crate::Window::orphans) lists them too. They are rendered as
    /// plain text, which providers take; in OpenAI's Responses as they were, since the call can be where only the provider sees it.
    pub orphans: Vec<SpanId>,
    /// The field by which the request refers to history that the provider holds: a budget cannot count it, and nothing here
    /// protects it. Where it is not wanted, send the whole history instead.
    pub elsewhere: Option<&'static str>,
}

/// A call that waits for its result.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) id: Arc<str>,
    pub(crate) name: Option<Arc<str>>,
    /// The turn that made it.
    pub(crate) made: Made,
    /// What the turn that made it says, where the name was not read yet.
    pub(crate) turn: Option<Content>,
}

/// The turn that a call is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Made {
    /// One that is in the window.
    By(SpanId),
    /// The message at this place of what is read.
    At(usize),
}

/// A span that was read, and where.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) index: usize,
    pub(crate) span: NewSpan,
    pub(crate) opaque: bool,
    pub(crate) orphan: bool,
}

type Calls = fn(&Value, &mut dyn FnMut(&str, &str));

/// A request, as far as it is read.
#[derive(Debug)]
pub struct Reading {
    format: &'static str,
    letter: char,
    calls: Calls,
    /// The place of the message at hand.
    index: usize,
    read: Vec<Read>,
    /// Calls without a result, oldest first. Providers use ids again: a result is of the newest turn that has one.
    waiting: Vec<Waiting>,
    /// The names of the calls of earlier turns that were looked into: each is read once, not for each of its results.
    named: HashMap<Made, HashMap<Arc<str>, Arc<str>>>,
    /// Frames, names and labels: most are the same.
    kept: HashSet<Arc<str>>,
    /// What is being written.
    frame: Vec<u8>,
    json: Vec<u8>,
    pub(super) elsewhere: Option<&'static str>,
}

/// Where something stands in a request.
#[derive(Clone, Copy, Debug)]
struct At<'v> {
    /// Marks before the frame.
    mark: &'static str,
    /// Of a block: the message that it begins and the list there, if it is the first.
    block: Option<Option<(&'v Value, &'v Value)>>,
    value: &'v Value,
}

impl<'v> At<'v> {
    /// An element of the list.
    fn element(value: &'v Value) -> Self {
        Self { mark: "", block: None, value }
    }

    /// A block of a message.
    fn block(message: &'v Value, list: &'v Value, at: usize, value: &'v Value) -> Self {
        Self { mark: "", block: Some((at == 0).then_some((message, list))), value }
    }

    /// Beside the list.
    fn aside(self) -> Self {
        Self { mark: ASIDE, ..self }
    }
}

/// What of it is the span's text.
#[derive(Clone, Copy, Debug)]
enum Said<'v> {
    /// This string in it.
    Text(&'v Value),
    /// This JSON in it.
    Json(&'v Value),
    /// All of it.
    Whole,
}

/// Whether base64 in it can be a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Files {
    Counted,
    AsText,
}

impl Reading {
    pub(crate) fn new<F: Format>(waiting: Vec<Waiting>) -> Self {
        Self {
            format: <F as super::validate::Format>::NAME,
            letter: F::SHAPE.letter,
            calls: F::calls,
            index: 0,
            read: Vec::new(),
            waiting,
            named: HashMap::new(),
            kept: HashSet::new(),
            frame: Vec::new(),
            json: Vec::new(),
            elsewhere: None,
        }
    }

    pub(crate) fn finish(self) -> (Vec<Read>, Option<&'static str>) {
        (self.read, self.elsewhere)
    }

    /// Reads every message of a list.
    fn each<'v>(
        &mut self,
        list: &'v [Value],
        mut read: impl FnMut(&mut Self, &'v Value) -> Result<(), ImportError>,
    ) -> Result<(), ImportError> {
        for (index, message) in list.iter().enumerate() {
            self.index = index;
            read(self, message)?;
        }
        Ok(())
    }

    fn wrong(&self, what: &'static str) -> ImportError {
        ImportError::Message { format: self.format, index: self.index, what }
    }

    /// Refuses content that is neither a text, nor blocks, nor missing.
    fn readable(&self, message: &Value, field: &str) -> Result<(), ImportError> {
        match message.get(field) {
            Some(Value::Bool(_) | Value::Number(_)) => Err(self.wrong("its content is neither a text nor a list")),
            _ => Ok(()),
        }
    }

    /// Refuses a message that says more beside its blocks than a frame takes.
    fn fits(&self, message: &Value, blocks: &Value) -> Result<(), ImportError> {
        let fields = message.as_object().map_or(0, serde_json::Map::len);
        let mut around = Vec::new();
        if fields > 2 {
            frame::write(message, &[(blocks, BLOCKS)], &mut around);
        }
        let fits = around.len() <= LONGEST;
        if fits { Ok(()) } else { Err(self.wrong("its fields beside the content are longer than 256 bytes")) }
    }

    /// Takes a span in, in its frame.
    fn take(&mut self, at: At<'_>, said: Said<'_>, files: Files, new: impl FnOnce(Content) -> NewSpan) {
        let (content, json) = self.framed(at, said);
        let frame = kept(&mut self.kept, &frame::as_text(&self.frame));
        let media = json.filter(|_| files == Files::Counted).and_then(Media::of);
        let span = new(content).framed(Wire { frame, opaque: false }, media);
        self.read.push(Read { index: self.index, span, opaque: false, orphan: false });
    }

    /// As [`take`](Self::take), of what nobody here can read.
    fn take_opaque(&mut self, at: At<'_>, files: Files, new: impl FnOnce(Content) -> NewSpan) {
        self.take(at, Said::Whole, files, new);
        self.is_opaque();
    }

    /// The last one cannot be read here.
    fn is_opaque(&mut self) {
        if let Some(read) = self.read.last_mut() {
            read.opaque = true;
            read.span.wire.iter_mut().for_each(|wire| wire.opaque = true);
        }
    }

    /// The text, and the JSON that it is, if it is; its frame is written.
    fn framed<'v>(&mut self, at: At<'v>, said: Said<'v>) -> (Content, Option<&'v Value>) {
        let frame = &mut self.frame;
        frame.clear();
        frame.extend_from_slice(self.letter.encode_utf8(&mut [0; 4]).as_bytes());
        frame.extend_from_slice(at.mark.as_bytes());
        if let Some(message) = at.block {
            if let Some((message, list)) = message {
                frame::write(message, &[(list, BLOCKS)], frame);
            }
            frame.extend_from_slice(BLOCK.as_bytes());
        }
        let begun = frame.len();
        let mut around = |hole, mark| {
            if !frame::is_plain(at.value, hole) {
                return false;
            }
            frame::write(at.value, &[(hole, mark)], frame);
            let fits = frame.len().saturating_sub(begun) <= LONGEST;
            if !fits {
                frame.truncate(begun);
            }
            fits
        };
        match said {
            Said::Text(hole) => {
                if let Some(text) = hole.as_str().filter(|text| !text.is_empty())
                    && around(hole, TEXT)
                {
                    return (text.into(), None);
                }
            }
            Said::Json(hole) if around(hole, JSON) => return (self.json(hole), Some(hole)),
            _ => {}
        }
        frame.extend_from_slice(JSON.as_bytes());
        (self.json(at.value), Some(at.value))
    }

    /// JSON as its text.
    fn json(&mut self, value: &Value) -> Content {
        self.json.clear();
        frame::write(value, &[], &mut self.json);
        frame::as_text(&self.json).as_ref().into()
    }

    /// A message whose content is a text or a list of blocks; `block` reads one of those.
    fn message<'v>(
        &mut self,
        message: &'v Value,
        field: &str,
        files: Files,
        new: fn(Content) -> NewSpan,
        mut block: impl FnMut(&mut Self, At<'v>),
    ) -> Result<(), ImportError> {
        let at = At::element(message);
        match message.get(field) {
            Some(text @ Value::String(_)) => self.take(at, Said::Text(text), files, new),
            Some(list @ Value::Array(blocks)) if !blocks.is_empty() => {
                self.fits(message, list)?;
                for (index, value) in blocks.iter().enumerate() {
                    block(self, At::block(message, list, index, value));
                }
            }
            _ => self.take(at, Said::Whole, files, new),
        }
        Ok(())
    }

    /// A model's message, which is one span; its calls wait from here on.
    fn model(&mut self, message: &Value, said: Said<'_>, files: Files, seal: bool, turn: Option<&'static str>) {
        let (mut ids, made) = (Vec::new(), Made::At(self.index));
        (self.calls)(message, &mut |id, name| {
            let (id, name): (Arc<str>, _) = (id.into(), kept(&mut self.kept, name));
            ids.push(id.clone());
            self.waiting.push(Waiting { id, name: Some(name), made, turn: None });
        });
        let label = turn.map(|label| kept(&mut self.kept, label));
        let said = if ids.is_empty() && !seal { said } else { Said::Whole };
        self.take(At::element(message), said, files, |content| {
            let span = NewSpan::model(content).calls(ids);
            let span = if seal { span.sealed() } else { span };
            match label {
                Some(label) => span.turn(label),
                None => span,
            }
        });
    }

    /// The result of a call before it that has this id and no result; an orphan where there is none.
    fn result(&mut self, at: At<'_>, said: Said<'_>, id: &str, name: Option<&str>, failed: bool) {
        let called = self.first_of_newest(|reading, at| reading.waiting.get(at).is_some_and(|call| *call.id == *id));
        let told = called.and_then(|at| self.name_of(at));
        let call = called.map(|at| self.waiting.remove(at).id);
        let orphan = call.is_none();
        let name = told.unwrap_or_else(|| kept(&mut self.kept, name.unwrap_or("unknown")));
        self.take(at, said, Files::Counted, |content| {
            let span = NewSpan::tool(name, content);
            let span = if failed { span.failed() } else { span };
            match call {
                Some(id) => span.answers(id),
                None => span.orphan(id),
            }
        });
        if let Some(read) = self.read.last_mut() {
            read.orphan = orphan;
        }
    }

    /// The tool that a call is of, by its place among those that wait.
    fn name_of(&mut self, at: usize) -> Option<Arc<str>> {
        let call = self.waiting.get_mut(at)?;
        if let Some(content) = call.turn.take() {
            let calls = self.calls;
            let names = self.named.entry(call.made).or_insert_with(|| names(&content, calls));
            call.name = names.get(&call.id).cloned();
        }
        call.name.clone()
    }

    /// The id of the call of this name that waits: the first of the newest turn that has one.
    fn called(&mut self, name: &str) -> Option<Arc<str>> {
        let at = self.first_of_newest(|reading, at| reading.name_of(at).as_deref() == Some(name))?;
        self.waiting.get(at).map(|call| call.id.clone())
    }

    /// The first call of the newest turn that has one: results come in the order of their calls.
    fn first_of_newest(&mut self, is: impl Fn(&mut Self, usize) -> bool) -> Option<usize> {
        let mut first = (0..self.waiting.len()).rev().find(|at| is(self, *at))?;
        let made = self.waiting.get(first)?.made;
        for at in (0..first).rev() {
            if self.waiting.get(at).is_none_or(|call| call.made != made) {
                break;
            }
            if is(self, at) {
                first = at;
            }
        }
        Some(first)
    }

    /// Whether a call of this id waits.
    fn waits(&self, id: &str) -> bool {
        self.waiting.iter().any(|call| *call.id == *id)
    }
}

/// The tools that a turn calls, by the ids of the calls.
fn names(turn: &Content, calls: Calls) -> HashMap<Arc<str>, Arc<str>> {
    let mut names = HashMap::new();
    if let Some(turn) = turn.as_text().and_then(|turn| serde_json::from_str(turn).ok()) {
        calls(&turn, &mut |id, name| drop(names.insert(id.into(), name.into())));
    }
    names
}

/// The one copy of a text.
fn kept(all: &mut HashSet<Arc<str>>, text: &str) -> Arc<str> {
    if let Some(kept) = all.get(text) {
        return kept.clone();
    }
    let text: Arc<str> = text.into();
    all.insert(text.clone());
    text
}

/// A field that is a text.
fn text<'v>(of: &'v Value, field: &str) -> Option<&'v str> {
    of.get(field).and_then(Value::as_str)
}

/// The one string in a list of one text block.
fn only_text<'v>(blocks: &'v Value, kind: &str) -> Option<&'v Value> {
    let Some([block]) = blocks.as_array().map(Vec::as_slice) else { return None };
    let text = block.get("text").filter(|text| text.is_string())?;
    (kind.is_empty() || self::text(block, "type") == Some(kind)).then_some(text)
}

/// A request that was one text.
fn sole(value: &Value) -> At<'_> {
    At { mark: SOLE, ..At::element(value) }
}
