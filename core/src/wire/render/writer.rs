//! The writer: one walk over what a window shows, into one buffer.

use std::{borrow::Cow, collections::VecDeque, ops::Range};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::{
    Rendered,
    shape::{self, Answer, Shape, System},
};
use crate::{
    Content, ResultState, Role, Shown, SpanId,
    window::{candidates::Class, contents::Contents, table::Entry},
    wire::{
        RenderError,
        frame::{self, Frame, quoted},
    },
};

/// The message around blocks of system text in the list.
const SYSTEM_BLOCKS: (&str, &str) = (r#"{"role":"system","content":["#, "]}");

/// Writes what the window shows. O(window).
pub(crate) fn write(contents: &Contents, shape: &'static Shape) -> Result<Rendered, RenderError> {
    let mut writer = Writer::new(contents, shape);
    contents.each_shown(|shown, _, _| writer.place(shown))?;
    writer.finish()
}

struct Writer<'c> {
    contents: &'c Contents,
    shape: &'static Shape,
    out: Vec<u8>,
    elements: usize,
    /// The message whose blocks go on.
    open: Option<Open<'c>>,
    /// The exchange whose results come next: its first span, and how many results.
    unit: Option<(SpanId, usize)>,
    /// What came between a call and its results, which is shown after them.
    later: Vec<Shown>,
    /// The span that was written last, if it is the model's.
    spoke: Option<SpanId>,
    aside: Aside<'c>,
    /// The string that alone was the list.
    sole: Option<Range<usize>>,
    unsealed: Vec<SpanId>,
}

/// A message that is not closed.
struct Open<'c> {
    after: &'c str,
    last: SpanId,
    results: bool,
}

/// System text beside the list.
#[derive(Default)]
struct Aside<'c> {
    out: Vec<u8>,
    blocks: usize,
    /// Around the blocks, where they are of a message.
    message: Option<(&'c str, &'c str)>,
    /// What alone was the field.
    sole: Option<Vec<u8>>,
}

impl<'c> Writer<'c> {
    fn new(contents: &'c Contents, shape: &'static Shape) -> Self {
        let guess = usize::try_from(contents.utilization).unwrap_or(0).saturating_mul(5).saturating_add(64);
        let mut out = Vec::with_capacity(guess.min(1 << 28));
        out.extend_from_slice(b"{\"");
        out.extend_from_slice(shape.list.as_bytes());
        out.extend_from_slice(b"\":[");
        Self {
            contents,
            shape,
            out,
            elements: 0,
            open: None,
            unit: None,
            later: Vec::new(),
            spoke: None,
            aside: Aside::default(),
            sole: None,
            unsealed: Vec::new(),
        }
    }

    /// Takes what is shown next. Where nothing may come between a call and its results, what was there is shown after them.
    fn place(&mut self, shown: Shown) -> Result<(), RenderError> {
        self.step(shown)?;
        if self.unit.is_some() || self.later.is_empty() {
            return Ok(());
        }
        let mut work = VecDeque::from(std::mem::take(&mut self.later));
        while let Some(next) = work.pop_front() {
            self.step(next)?;
            if self.unit.is_none() {
                self.later.drain(..).rev().for_each(|shown| work.push_front(shown));
            }
        }
        Ok(())
    }

    /// Writes it, or keeps it for later.
    fn step(&mut self, shown: Shown) -> Result<(), RenderError> {
        let Some((first, left)) = self.unit else { return self.begin(shown) };
        match of(shown).filter(|span| self.contents.exchanges.first_of(*span) == first) {
            Some(span) if self.answers(span) => {
                self.write(shown)?;
                let left = left.saturating_sub(1);
                self.unit = (left > 0).then_some((first, left));
                Ok(())
            }
            // The rest of the turn.
            Some(span) if self.contents.exchanges.result(span).is_none() => self.write(shown),
            _ => {
                self.later.push(shown);
                Ok(())
            }
        }
    }

    /// Writes what stands alone, or a turn whose results are to come.
    fn begin(&mut self, shown: Shown) -> Result<(), RenderError> {
        let turn = of(shown).filter(|span| matches!(shown, Shown::Span(_)) && self.makes_calls(*span));
        let Some(span) = turn else { return self.write(shown) };
        self.bridge(span);
        self.write(shown)?;
        if !self.shape.results_adjoin {
            return Ok(());
        }
        let unit = self.contents.exchanges.unit(span).unwrap_or_default();
        let results = unit.iter().filter(|part| **part > span && self.answers(**part)).count();
        self.unit = (results > 0).then(|| (self.contents.exchanges.first_of(span), results));
        Ok(())
    }

    fn makes_calls(&self, span: SpanId) -> bool {
        self.contents.exchanges.part(span).is_some_and(|part| !part.calls().is_empty())
    }

    /// Says what stood between a model's words and its calls, where a summary elsewhere took that away.
    fn bridge(&mut self, turn: SpanId) {
        let Some(before) = self.spoke.filter(|_| self.shape.calls_follow_user) else { return };
        let mut between =
            std::iter::successors(Some(before.next()), |span| Some(span.next())).take_while(|span| *span < turn);
        let is_shown = |span: &SpanId| self.contents.table.get(*span).is_some_and(Entry::is_shown);
        let gone = between.find(|span| !is_shown(span));
        if let Some(gone) = gone {
            self.said(&format!("[{gone}: in a summary above]"));
        }
    }

    /// Whether a span is shown as the one result of its call: it is that, and the call is in the window.
    fn answers(&self, span: SpanId) -> bool {
        let exchanges = &self.contents.exchanges;
        if !matches!(exchanges.result(span), Some(ResultState::Final | ResultState::Lost)) {
            return false;
        }
        let shown = self.contents.table.get(span).is_some_and(Entry::is_shown);
        shown && self.call_of(span).is_some()
    }

    /// The call that a span answers, and the resident span that made it.
    fn call_of(&self, span: SpanId) -> Option<(&'c str, &'c Entry)> {
        let (call, turn) = self.contents.exchanges.call_of(span)?;
        Some((call, self.contents.table.get(turn).filter(|turn| turn.is_resident())?))
    }

    fn write(&mut self, shown: Shown) -> Result<(), RenderError> {
        self.spoke = of(shown).filter(|span| {
            let entry = self.contents.table.get(*span);
            entry.is_some_and(|entry| entry.is_resident() && entry.role == Role::Assistant)
        });
        match shown {
            Shown::Span(span) => {
                let Some(entry) = self.contents.table.get(span) else { return Ok(()) };
                self.span(span, entry)
            }
            Shown::Summary(span) => {
                let entry = self.contents.table.get(span);
                let text = entry.and_then(|entry| entry.content.as_ref()).and_then(Content::as_text);
                self.said(text.unwrap_or_default());
                Ok(())
            }
            Shown::Pointer(first, last) => {
                let text = self.contents.pointer_text(first, last);
                self.said(&text);
                Ok(())
            }
            Shown::Discarded(span) => {
                let Some(gone) = self.contents.gone.get(&span) else { return Ok(()) };
                match self.contents.table.get(span) {
                    Some(entry) if self.answers(span) => self.result(span, entry, &gone.notice),
                    _ => self.said(&gone.notice),
                }
                Ok(())
            }
        }
    }

    /// A span, in its frame if it has one of this format.
    fn span(&mut self, span: SpanId, entry: &'c Entry) -> Result<(), RenderError> {
        let Some(content) = &entry.content else { return Ok(()) };
        if self.shape.checks_seals && self.is_broken(span) {
            return self.unsealed(span, content);
        }
        let frame = self.contents.wires.get(span).and_then(|wire| Frame::parse(&wire.frame));
        let text = content.as_text();
        // A result whose call is not there is none any more.
        let torn = match self.contents.exchanges.result(span) {
            Some(ResultState::Orphan) => !self.shape.keeps_orphans,
            Some(_) => !self.answers(span),
            None => false,
        };
        match (frame, text) {
            (Some(frame), Some(text)) if frame.format == self.shape.letter && !torn => self.framed(span, &frame, text),
            (Some(frame), _) if frame.format != self.shape.letter && !self.is_plain(span, &frame) => {
                Err(RenderError::OtherFormat {
                    span,
                    format: shape::name(self.shape.letter),
                    imported: shape::name(frame.format),
                })
            }
            _ => self.bare(span, entry, content),
        }
    }

    /// Whether a span of another format is no more than its text.
    fn is_plain(&self, span: SpanId, frame: &Frame<'_>) -> bool {
        !frame.is_json && !self.makes_calls(span)
    }

    fn is_broken(&self, span: SpanId) -> bool {
        let sealed = self.contents.exchanges.part(span).is_some_and(|part| part.seal().is_some());
        sealed && !self.contents.seals.is_intact(span)
    }

    /// A message as it was imported.
    fn framed(&mut self, span: SpanId, frame: &Frame<'c>, text: &str) -> Result<(), RenderError> {
        if frame.aside {
            self.aside.write(frame, text, self.shape.system);
            return Ok(());
        }
        if frame.sole {
            let (before, after) = self.shape.user;
            self.element();
            self.out.extend_from_slice(before.as_bytes());
            let start = self.out.len();
            fill(frame, text, &mut self.out);
            self.sole = Some(start..self.out.len());
            self.out.extend_from_slice(after.as_bytes());
            return Ok(());
        }
        if frame.is_block {
            self.open_for(span, frame.message, self.answers(span));
        } else {
            self.element();
        }
        fill(frame, text, &mut self.out);
        Ok(())
    }

    /// A span that no import framed, by what it is.
    fn bare(&mut self, span: SpanId, entry: &'c Entry, content: &'c Content) -> Result<(), RenderError> {
        let part = self.contents.exchanges.part(span);
        let makes_calls = self.makes_calls(span);
        let sealed = part.is_some_and(|part| part.seal().is_some());
        let Content::Text(text) = content else {
            let is_plain = !makes_calls && !sealed && self.contents.exchanges.result(span).is_none();
            return self.image(span, content.as_bytes(), is_plain);
        };
        if makes_calls || sealed {
            return self.turn(span, text, false);
        }
        match self.contents.exchanges.result(span) {
            Some(ResultState::Final | ResultState::Lost) if self.answers(span) => self.result(span, entry, text),
            Some(state) => {
                let name = self.contents.name(entry).map_or("a tool", AsRef::as_ref);
                self.said(&format!("[{} of {name}]\n{text}", kind(state)));
            }
            // What pruning says of itself is no turn of the model: one of those would be its last word.
            None if self.contents.class(entry.lane) == Class::Rationale => self.said(text),
            None => match entry.role {
                Role::System => self.system(text),
                Role::Assistant => self.around(self.shape.model, text),
                Role::User | Role::Tool => self.said(text),
            },
        }
        Ok(())
    }

    /// The result of a call that is in the window.
    fn result(&mut self, span: SpanId, entry: &'c Entry, text: &str) {
        let Some((call, turn)) = self.call_of(span) else { return };
        if self.shape.results_are_blocks {
            self.open_for(span, Some(self.shape.blocks), true);
        } else {
            self.element();
        }
        let lost = self.contents.exchanges.result(span) == Some(ResultState::Lost);
        let answer = Answer {
            call,
            name: self.contents.name(entry).map(AsRef::as_ref),
            text,
            failed: lost || self.contents.failed.contains(&span),
            turn: turn.content.as_ref().and_then(Content::as_text).unwrap_or_default(),
        };
        (self.shape.result)(&answer, &mut self.out);
    }

    /// A model's turn that a program pushed as JSON, or one that lost its seal.
    fn turn(&mut self, span: SpanId, text: &str, unseal: bool) -> Result<(), RenderError> {
        let no_message = || RenderError::NoMessage { span, format: shape::name(self.shape.letter) };
        let turn = serde_json::from_str(text).ok().filter(|turn| !frame::is_too_deep(turn));
        let turn = turn.and_then(self.shape.turn).ok_or_else(no_message)?;
        for mut message in turn {
            if unseal && !without_reasoning(&mut message) {
                continue;
            }
            self.element();
            frame::write(&message, &[], &mut self.out);
        }
        Ok(())
    }

    /// What a sealed turn is without its signed blocks.
    fn unsealed(&mut self, span: SpanId, content: &Content) -> Result<(), RenderError> {
        self.unsealed.push(span);
        self.turn(span, content.as_text().unwrap_or_default(), true)
    }

    /// System text that stands nowhere yet.
    fn system(&mut self, text: &str) {
        let first = self.elements == 0;
        match self.shape.system {
            System::Listed(around) | System::Field(_, around) => self.around(around, text),
            System::Blocks(_) | System::Message(_) if first => self.aside.block(self.shape.system, text),
            // Once the conversation has begun, it would change what every later turn rests on.
            System::Blocks(_) | System::Message(_) => self.said(text),
        }
    }

    /// What the library says, or a user: a message of its own.
    fn said(&mut self, text: &str) {
        self.around(self.shape.user, text);
    }

    /// A text in a message of its own.
    fn around(&mut self, (before, after): (&str, &str), text: &str) {
        self.element();
        self.out.extend_from_slice(before.as_bytes());
        quoted(text, &mut self.out);
        self.out.extend_from_slice(after.as_bytes());
    }

    fn image(&mut self, span: SpanId, bytes: &[u8], is_plain: bool) -> Result<(), RenderError> {
        let media = match imagesize::image_type(bytes) {
            Ok(imagesize::ImageType::Png) => "image/png",
            Ok(imagesize::ImageType::Jpeg) => "image/jpeg",
            Ok(imagesize::ImageType::Gif) => "image/gif",
            Ok(imagesize::ImageType::Webp) => "image/webp",
            _ => "",
        };
        if media.is_empty() || !is_plain {
            return Err(RenderError::Bytes { span, format: shape::name(self.shape.letter) });
        }
        self.element();
        let (before, between, after) = self.shape.image;
        let data = STANDARD.encode(bytes);
        for text in [before, media, between, &data, after] {
            self.out.extend_from_slice(text.as_bytes());
        }
        Ok(())
    }

    /// Another element of the list begins.
    fn element(&mut self) {
        self.close();
        if self.elements > 0 {
            self.out.push(b',');
        }
        self.elements = self.elements.saturating_add(1);
    }

    fn close(&mut self) {
        if let Some(open) = self.open.take() {
            self.out.extend_from_slice(open.after.as_bytes());
        }
    }

    /// Another block begins: of the message that is open, where it is of that, or else of one that begins. Results of one turn
    /// are of one message.
    fn open_for(&mut self, span: SpanId, message: Option<(&'c str, &'c str)>, result: bool) {
        let joins = self.open.as_ref().is_some_and(|open| match (result, message) {
            (true, _) => open.results && self.unit.is_some(),
            (false, None) => open.last.next() == span,
            (false, Some(_)) => false,
        });
        if joins {
            self.out.push(b',');
            if let Some(open) = &mut self.open {
                open.last = span;
            }
            return;
        }
        self.element();
        // Where the message's first block left, the rest of it is under the same role.
        let is_system = self.contents.table.get(span).is_some_and(|entry| entry.role == Role::System);
        let (before, after) = message.unwrap_or(if is_system { SYSTEM_BLOCKS } else { self.shape.blocks });
        self.out.extend_from_slice(before.as_bytes());
        self.open = Some(Open { after, last: span, results: result });
    }

    fn finish(mut self) -> Result<Rendered, RenderError> {
        self.unit = None;
        for shown in std::mem::take(&mut self.later) {
            self.place(shown)?;
        }
        self.close();
        let Self { shape, mut out, elements, aside, sole, unsealed, .. } = self;
        if elements == 0 {
            return Err(RenderError::Empty { format: shape::name(shape.letter), list: shape.list });
        }
        out.push(b']');
        let mut list = shape.list.len().saturating_add(4)..out.len();
        if let Some(literal) = sole.filter(|_| elements == 1) {
            let literal = out.get(literal).unwrap_or_default().to_vec();
            out.truncate(list.start);
            out.extend_from_slice(&literal);
            list.end = out.len();
        }
        aside.finish(shape, &mut out);
        out.push(b'}');
        Ok(Rendered { body: frame::text(out), list, unsealed })
    }
}

impl<'c> Aside<'c> {
    /// A block as it was imported, or what was the whole field.
    fn write(&mut self, frame: &Frame<'c>, text: &str, system: System) {
        if !frame.is_block {
            let mut sole = Vec::new();
            fill(frame, text, &mut sole);
            self.sole = Some(sole);
            return self.block(system, text);
        }
        if frame.message.is_some() {
            self.message = frame.message;
        }
        self.next();
        fill(frame, text, &mut self.out);
    }

    fn block(&mut self, system: System, text: &str) {
        self.next();
        let kind: &[u8] = if matches!(system, System::Message(_)) { b"" } else { br#""type":"text","# };
        self.out.push(b'{');
        self.out.extend_from_slice(kind);
        self.out.extend_from_slice(br#""text":"#);
        quoted(text, &mut self.out);
        self.out.push(b'}');
    }

    fn next(&mut self) {
        if self.blocks > 0 {
            self.out.push(b',');
        }
        self.blocks = self.blocks.saturating_add(1);
    }

    fn finish(self, shape: &Shape, out: &mut Vec<u8>) {
        let (System::Blocks(field) | System::Message(field) | System::Field(field, _)) = shape.system else { return };
        if self.blocks == 0 {
            return;
        }
        out.extend_from_slice(b",\"");
        out.extend_from_slice(field.as_bytes());
        out.extend_from_slice(b"\":");
        if let Some(sole) = self.sole.filter(|_| self.blocks == 1) {
            return out.extend_from_slice(&sole);
        }
        let (before, after) = match shape.system {
            System::Message(_) => self.message.unwrap_or((r#"{"parts":["#, "]}")),
            _ => ("[", "]"),
        };
        out.extend_from_slice(before.as_bytes());
        out.extend_from_slice(&self.out);
        out.extend_from_slice(after.as_bytes());
    }
}

/// Puts a text into its frame.
fn fill(frame: &Frame<'_>, text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(frame.before.as_bytes());
    if frame.is_json {
        out.extend_from_slice(text.as_bytes());
    } else {
        quoted(text, out);
    }
    out.extend_from_slice(frame.after.as_bytes());
}

/// The span that is shown, where it is one of its own.
fn of(shown: Shown) -> Option<SpanId> {
    match shown {
        Shown::Span(span) | Shown::Discarded(span) => Some(span),
        _ => None,
    }
}

fn kind(state: ResultState) -> Cow<'static, str> {
    match state {
        ResultState::Interim => "a result, not the last,",
        ResultState::Late => "a late result",
        _ => "a result",
    }
    .into()
}

/// Takes signed blocks out of a message; whether it says anything without them.
fn without_reasoning(message: &mut Value) -> bool {
    let Some(blocks) = message.get_mut("content").and_then(Value::as_array_mut) else { return true };
    let signed = |block: &Value| matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"));
    blocks.retain(|block| !signed(block));
    let blank =
        |block: &Value| block["type"] == "text" && block["text"].as_str().is_none_or(|text| text.trim().is_empty());
    !blocks.iter().all(blank)
}
