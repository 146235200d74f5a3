//! What the formats give their records to: it pairs calls and results, builds the spans, and keeps the report.

use std::{collections::BTreeMap, sync::Arc};

use keepspan::{NewSpan, Role};

use crate::{
    error::Fault,
    formats::blocks::{Text, json},
    pairing::Pairing,
    picture::Picture,
    report::{MAX_LISTED, Repair, RepairKind, Report},
    step::{Call, Compaction, CompactionKind, Conversation, Entry, EntryKind, Place, Step},
};

/// Kinds of unknown records that are told apart.
const MAX_UNKNOWN: usize = 64;

pub(crate) struct Session<'s> {
    /// Whether the step was taken.
    step: &'s mut dyn FnMut(Step) -> bool,
    report: Report,
    pairing: Pairing,
    /// Line of the first, and their number.
    unknown: BTreeMap<String, (u64, u64)>,
    further_unknown: (u64, u64),
    begun: bool,
    /// Entries of the conversation.
    entries: u64,
    /// The label of the model's entries that were given last, until something else is.
    run: Option<Arc<str>>,
}

impl<'s> Session<'s> {
    pub(crate) fn new(step: &'s mut dyn FnMut(Step) -> bool) -> Self {
        Self {
            step,
            report: Report::default(),
            pairing: Pairing::default(),
            unknown: BTreeMap::new(),
            further_unknown: (0, 0),
            begun: false,
            entries: 0,
            run: None,
        }
    }

    fn give(&mut self, step: Step) -> Result<(), Fault> {
        if (self.step)(step) { Ok(()) } else { Err(Fault::Refused) }
    }

    /// Ends the conversation before and begins one; without a name it is called by its number.
    pub(crate) fn begin(&mut self, name: Option<&str>, place: Place) -> Result<(), Fault> {
        self.close();
        self.begun = true;
        self.report.conversations = self.report.conversations.saturating_add(1);
        let number = self.report.conversations;
        let name = name.filter(|name| !name.is_empty()).map_or_else(|| number.to_string().into(), Arc::from);
        self.give(Step::Begins(Conversation { name, number, place }))
    }

    /// Begins a conversation where none has begun: not every file says so.
    fn begun_by(&mut self, place: Place) -> Result<(), Fault> {
        if self.begun { Ok(()) } else { self.begin(None, place) }
    }

    /// Whether a conversation has begun.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun
    }

    /// Entries of the conversation so far: the number of the next one.
    pub(crate) fn entries(&self) -> u64 {
        self.entries
    }

    fn close(&mut self) {
        for open in self.pairing.end() {
            let what = RepairKind::UnansweredCall { call: open.id.to_string(), tool: open.tool.to_string() };
            self.repair(open.line, what);
        }
        (self.entries, self.run) = (0, None);
    }

    /// Ends the last conversation; the report, in the order of lines.
    pub(crate) fn finish(mut self) -> Report {
        self.close();
        for (kind, (line, count)) in std::mem::take(&mut self.unknown) {
            self.repair(line, RepairKind::UnknownRecord { kind, count });
        }
        if let (line, count @ 1..) = self.further_unknown {
            self.repair(line, RepairKind::MoreUnknown { count });
        }
        self.report.repaired.sort_by_key(|repair| repair.line);
        self.report
    }

    pub(crate) fn repair(&mut self, line: u64, what: RepairKind) {
        let count = self.report.repairs.entry(what.name()).or_default();
        *count = count.saturating_add(1);
        if self.report.repaired.len() < MAX_LISTED {
            self.report.repaired.push(Repair { line, what });
        }
    }

    /// A record or part of an unknown kind: it is skipped, and reported once a kind.
    pub(crate) fn unknown(&mut self, kind: &str, line: u64) {
        if let Some((_, count)) = self.unknown.get_mut(kind) {
            *count = count.saturating_add(1);
        } else if self.unknown.len() < MAX_UNKNOWN {
            self.unknown.insert(kind.chars().take(80).collect(), (line, 1));
        } else {
            let (first, count) = &mut self.further_unknown;
            *first = if *count == 0 { line } else { *first };
            *count = count.saturating_add(1);
        }
    }

    /// A record or part of a known kind that the model did not see, or that repeats another.
    pub(crate) fn left_out(&mut self, kind: &'static str) {
        let count = self.report.left_out.entry(kind).or_default();
        *count = count.saturating_add(1);
    }

    fn entry(&mut self, entry: Entry) -> Result<(), Fault> {
        self.begun_by(entry.place)?;
        if !matches!(entry.kind, EntryKind::Model | EntryKind::Thinking) {
            self.run = None;
        }
        self.entries = self.entries.saturating_add(1);
        self.report.entries = self.report.entries.saturating_add(1);
        self.give(Step::Entry(entry))
    }

    fn plain(&mut self, kind: EntryKind, text: Arc<str>, place: Place, span: NewSpan) -> Result<(), Fault> {
        if text.is_empty() {
            return Ok(());
        }
        self.entry(Entry::new(span, text, kind, place))
    }

    /// A system or developer prompt. Empty text is no entry, here and below.
    pub(crate) fn system(&mut self, text: impl Into<Arc<str>>, place: Place) -> Result<(), Fault> {
        let text = text.into();
        self.plain(EntryKind::System, text.clone(), place, NewSpan::notice(text))
    }

    /// What a person said.
    pub(crate) fn human(&mut self, text: impl Into<Arc<str>>, place: Place) -> Result<(), Fault> {
        let text = text.into();
        self.plain(EntryKind::Human, text.clone(), place, NewSpan::human(text))
    }

    /// What the program around the model said under `role`.
    pub(crate) fn notice(&mut self, text: impl Into<Arc<str>>, role: Role, place: Place) -> Result<(), Fault> {
        let text = text.into();
        self.plain(EntryKind::Notice, text.clone(), place, NewSpan::notice(text).role(role))
    }

    /// A picture that a person gave.
    pub(crate) fn picture(&mut self, picture: Picture, place: Place) -> Result<(), Fault> {
        match picture {
            Picture::Sized { bytes, width, height } => {
                let span = NewSpan::image(bytes, width, height);
                self.entry(Entry::new(span, "".into(), EntryKind::Human, place))
            }
            Picture::Missing { what } => {
                let note = self.no_picture(what, place);
                self.human(note, place)
            }
        }
    }

    /// What a person said, a part a span.
    pub(crate) fn human_parts(&mut self, parts: Vec<Piece>, place: Place) -> Result<(), Fault> {
        for part in parts {
            match part {
                Piece::Text(text) => self.human(text, place)?,
                Piece::Picture(picture) => self.picture(picture, place)?,
            }
        }
        Ok(())
    }

    fn no_picture(&mut self, what: String, place: Place) -> String {
        let note = format!("[picture: {what}]");
        self.repair(place.line, RepairKind::NoPicture { what });
        note
    }

    /// The model's turn.
    pub(crate) fn turn(&mut self, turn: Turn, place: Place) -> Result<(), Fault> {
        let Turn { label, mut parts } = turn;
        parts.retain(|part| !part.text.is_empty() || !part.calls.is_empty());
        let label = label.or_else(|| (parts.len() > 1).then(|| format!("t{}", self.entries.saturating_add(1)).into()));
        for part in parts {
            self.part(part, label.as_ref(), place)?;
        }
        Ok(())
    }

    /// A part of a turn whose parts are records of their own, in formats that do not say which: those that follow each other.
    pub(crate) fn run(&mut self, turn: Turn, place: Place) -> Result<(), Fault> {
        let label = self.run.take().unwrap_or_else(|| format!("t{}", self.entries.saturating_add(1)).into());
        self.turn(Turn { label: Some(label.clone()), ..turn }, place)?;
        self.run = Some(label);
        Ok(())
    }

    fn part(&mut self, part: Part, label: Option<&Arc<str>>, place: Place) -> Result<(), Fault> {
        self.begun_by(place)?;
        let mut calls = Vec::with_capacity(part.calls.len());
        for call in part.calls {
            let id = match call.id {
                Some(id) => id,
                None => self.mint(place),
            };
            if self.pairing.call(&id, &call.name, place.line) {
                self.repair(place.line, RepairKind::DuplicateId { call: id.to_string() });
            }
            calls.push(Call { id, name: call.name, arguments: call.arguments });
        }
        self.report.calls = self.report.calls.saturating_add(calls.len() as u64);
        let text = if part.adjacent { part.text } else { with_calls(part.text, &calls) };
        let mut span = NewSpan::model(text.clone()).calls(calls.iter().map(|call| call.id.clone()));
        if let Some(label) = label {
            span = span.turn(label.clone());
        }
        if part.sealed {
            span = span.sealed();
        }
        let kind = if part.thinking { EntryKind::Thinking } else { EntryKind::Model };
        self.entry(Entry { calls, ..Entry::new(span, text, kind, place) })
    }

    /// An id for a call or result that has none.
    fn mint(&mut self, place: Place) -> Arc<str> {
        let id = self.pairing.mint();
        self.repair(place.line, RepairKind::NoId { call: id.to_string() });
        id
    }

    /// An id for a call of a format that has no ids: nothing to report.
    pub(crate) fn mint_id(&mut self) -> Arc<str> {
        self.pairing.mint()
    }

    /// A tool's result: one span a part, all but the last of them interim. `raw` is its record, which stands in for text
    /// where there is none.
    pub(crate) fn result(&mut self, outcome: Outcome<'_>, raw: &str, place: Place) -> Result<(), Fault> {
        self.begun_by(place)?;
        let Outcome { call, tool, failed, unasked, by_name, mut parts } = outcome;
        parts.retain(|part| !matches!(part, Piece::Text(text) if text.is_empty()));
        if parts.is_empty() {
            self.repair(place.line, RepairKind::EmptyResult);
            parts.push(Piece::Text(json(raw)));
        }
        let id = match call {
            Some(id) if by_name && !self.pairing.is_open(id) => {
                self.pairing.oldest_minted(tool).map_or(Text::Borrowed(id), Text::Owned)
            }
            Some(id) => Text::Borrowed(id),
            None if unasked => Text::Owned(self.pairing.mint()),
            None => {
                let open = self.pairing.oldest(tool);
                Text::Owned(match open {
                    Some(id) => {
                        self.repair(place.line, RepairKind::NoId { call: id.to_string() });
                        id
                    }
                    None => self.pairing.mint(),
                })
            }
        };
        let open = self.pairing.answer(&id);
        let orphan = open.is_none();
        // The call's own texts, where the result says the same.
        let (id, asked) = open.map_or_else(|| (id.into(), None), |open| (open.id, Some(open.tool)));
        if orphan {
            self.repair(place.line, RepairKind::OrphanResult { call: id.to_string() });
        }
        let tool = match tool {
            Some(tool) => asked.filter(|asked| **asked == *tool).or_else(|| Some(tool.into())),
            None => asked,
        };
        self.report.results = self.report.results.saturating_add(1);
        let last = parts.len().saturating_sub(1);
        for (number, part) in parts.into_iter().enumerate() {
            let (text, span) = self.result_part(part, tool.clone().unwrap_or_else(|| "unknown".into()), place);
            let span = if orphan {
                span.orphan(id.clone())
            } else if number == last {
                span.answers(id.clone())
            } else {
                span.interim(id.clone())
            };
            let span = if failed { span.failed() } else { span };
            let entry = Entry::new(span, text, EntryKind::Result, place);
            self.entry(Entry { answers: Some(id.clone()), tool: tool.clone(), failed, orphan, ..entry })?;
        }
        Ok(())
    }

    fn result_part(&mut self, part: Piece, tool: Arc<str>, place: Place) -> (Arc<str>, NewSpan) {
        match part {
            Piece::Text(text) => (text.clone(), NewSpan::tool(tool, text)),
            Piece::Picture(Picture::Sized { bytes, width, height }) => {
                ("".into(), NewSpan::tool(tool, bytes).sized(width, height))
            }
            Piece::Picture(Picture::Missing { what }) => {
                let note: Arc<str> = self.no_picture(what, place).into();
                (note.clone(), NewSpan::tool(tool, note))
            }
        }
    }

    /// The session pruned itself.
    pub(crate) fn compacted(
        &mut self,
        kind: CompactionKind,
        (tokens_before, tokens_saved): (Option<u64>, Option<u64>),
        place: Place,
    ) -> Result<(), Fault> {
        self.begun_by(place)?;
        self.report.compactions = self.report.compactions.saturating_add(1);
        self.give(Step::Compacted(Compaction { kind, tokens_before, tokens_saved, place }))
    }
}

impl Entry {
    fn new(span: NewSpan, text: Arc<str>, kind: EntryKind, place: Place) -> Self {
        Self { span, text, kind, calls: Vec::new(), answers: None, tool: None, failed: false, orphan: false, place }
    }
}

/// A model's turn: one span a part, all under one label.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    label: Option<Arc<str>>,
    parts: Vec<Part>,
}

#[derive(Debug, Default)]
struct Part {
    text: Arc<str>,
    calls: Vec<NewCall>,
    thinking: bool,
    sealed: bool,
    /// Whether the text has the calls in it.
    adjacent: bool,
}

/// A call whose id may be missing.
#[derive(Debug)]
pub(crate) struct NewCall {
    pub(crate) id: Option<Arc<str>>,
    pub(crate) name: Arc<str>,
    pub(crate) arguments: Arc<str>,
}

impl NewCall {
    pub(crate) fn new(id: Option<&str>, name: impl Into<Arc<str>>, arguments: impl Into<Arc<str>>) -> Self {
        Self { id: id.filter(|id| !id.is_empty()).map(Arc::from), name: name.into(), arguments: arguments.into() }
    }
}

impl Turn {
    /// A turn that the provider calls `label`.
    pub(crate) fn labelled(label: Option<&str>) -> Self {
        Self { label: label.map(Arc::from), parts: Vec::new() }
    }

    /// Reasoning; `sealed`: it is signed.
    pub(crate) fn think(&mut self, text: impl Into<Arc<str>>, sealed: bool) {
        self.parts.push(Part { text: text.into(), thinking: true, sealed, ..Part::default() });
    }

    /// Text, with the calls that follow it in one span.
    pub(crate) fn say(&mut self, text: impl Into<Arc<str>>) {
        let text = text.into();
        if !text.is_empty() {
            self.parts.push(Part { text, ..Part::default() });
        }
    }

    /// A call beside the text.
    pub(crate) fn call(&mut self, call: NewCall) {
        match self.parts.last_mut().filter(|part| !part.thinking) {
            Some(part) => part.calls.push(call),
            None => self.parts.push(Part { calls: vec![call], ..Part::default() }),
        }
    }

    /// Says that the last part is signed.
    pub(crate) fn seal(&mut self) {
        if let Some(part) = self.parts.last_mut() {
            part.sealed = true;
        }
    }

    /// Text that has calls in it, in prose.
    pub(crate) fn say_with(&mut self, text: impl Into<Arc<str>>, calls: Vec<NewCall>) {
        self.parts.push(Part { text: text.into(), calls, adjacent: true, ..Part::default() });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }
}

/// A tool's result.
#[derive(Debug, Default)]
pub(crate) struct Outcome<'a> {
    pub(crate) call: Option<&'a str>,
    pub(crate) tool: Option<&'a str>,
    pub(crate) failed: bool,
    /// Whether no call can be its own: a person ran the tool.
    pub(crate) unasked: bool,
    /// Whether the id can be one that the client invented for a call without one.
    pub(crate) by_name: bool,
    pub(crate) parts: Vec<Piece>,
}

/// A part of a result or of a message.
#[derive(Debug)]
pub(crate) enum Piece {
    Text(Arc<str>),
    Picture(Picture),
}

/// The text, and a line of JSON for each call.
fn with_calls(text: Arc<str>, calls: &[Call]) -> Arc<str> {
    if calls.is_empty() {
        return text;
    }
    let size = calls.iter().fold(text.len(), |size, call| {
        size.saturating_add(call.arguments.len())
            .saturating_add(call.id.len())
            .saturating_add(call.name.len())
            .saturating_add(64)
    });
    let mut all = String::with_capacity(size);
    all.push_str(&text);
    for call in calls {
        if !all.is_empty() {
            all.push('\n');
        }
        all.push_str("{\"id\":");
        quote(&mut all, &call.id);
        all.push_str(",\"name\":");
        quote(&mut all, &call.name);
        all.push_str(",\"arguments\":");
        if call.arguments.starts_with('{') {
            all.push_str(&call.arguments);
        } else {
            quote(&mut all, &call.arguments);
        }
        all.push('}');
    }
    all.into()
}

fn quote(all: &mut String, text: &str) {
    // What is text is JSON.
    all.push_str(&serde_json::to_string(text).unwrap_or_default());
}
