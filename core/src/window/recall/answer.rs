//! The answer to a model that recalls: the span itself comes back, or an excerpt does (rules R8, R25).

use std::sync::Arc;

use super::{
    Found, Recall,
    excerpt::{Excerpt, Title},
};
use crate::{
    Content, NewSpan, RecallError, SpanId, TokenCounter,
    pointer::Ids,
    tool::{Asked, RECALL, RecallCall, Wanted},
    window::{Operation, Restore, Shared, contents::Contents, pointers::Edit, step::Plan, table::Residency},
};

/// Answers a model's call; see [`Window::answer_recall`](crate::Window::answer_recall). Gives the [`RecallReply`].
#[derive(Debug)]
pub struct AnswerRecall {
    pub(crate) call: RecallCall,
    pub(crate) limit: u64,
}

/// The result of a model's call, to be pushed as any tool's: a [`NewSpan`] from it answers the call, and a later recall of
/// the same part supersedes it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "the provider expects a result to every call: push it"]
pub struct RecallReply {
    span: SpanId,
    call: Option<Arc<str>>,
    text: String,
    subject: String,
    restored: Vec<SpanId>,
    times: u32,
}

impl RecallReply {
    /// The span that was asked for.
    pub fn span(&self) -> SpanId {
        self.span
    }

    /// The id of the call; none where the provider gave none.
    pub fn call(&self) -> Option<&str> {
        self.call.as_deref()
    }

    /// What the model is told: one line in brackets, and after it the exact text of an excerpt.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The spans that are in the window again, at their own places: the one asked for, with its whole exchange; none where
    /// the reply is an excerpt.
    pub fn restored(&self) -> &[SpanId] {
        &self.restored
    }

    /// How often this window was asked for the span while its text was not in it, this time included. One that is evicted
    /// and recalled over and over is no progress, whatever its size: a program can stop there.
    pub fn times(&self) -> u32 {
        self.times
    }
}

impl From<RecallReply> for NewSpan {
    fn from(reply: RecallReply) -> Self {
        let result = Self::tool(RECALL, reply.text).reads(reply.subject);
        match reply.call {
            Some(call) => result.answers(call),
            None => result,
        }
    }
}

/// After how many recalls of a span the model is told of them.
const MANY: u32 = 3;

/// How a call is answered.
#[derive(Debug)]
enum How {
    /// The reply says it all.
    Said,
    Restored((Vec<SpanId>, Edit)),
    Excerpt(Found, Part),
}

#[derive(Debug)]
struct Part {
    title: Title,
    wanted: Wanted,
    /// In tokens, for the title and the text after it.
    room: u64,
    /// Of the whole span.
    tokens: u32,
    /// Whether the whole could come back.
    evicted: bool,
}

#[doc(hidden)]
#[derive(Debug)]
pub struct Answering {
    reply: RecallReply,
    how: How,
}

impl<'w, St: 'w> Operation<'w, St> for AnswerRecall {
    type Output = RecallReply;
    type Error = RecallError;
    type Effect = Answering;

    fn plan(self, contents: &Contents, counter: &dyn TokenCounter) -> Result<Plan<Answering>, RecallError> {
        let Self { call: RecallCall { id, asked }, limit } = self;
        let Asked { span, wanted } = asked?;
        // Says which ids do not exist, and what was discarded.
        let read = <Recall as Operation<'w, St>>::plan(Recall(span), contents, counter)?;
        let entry = contents.entry(span)?;
        let residency = entry.residency;
        let before = contents.recalls.get(&span).copied().unwrap_or(0);
        let times = before.saturating_add(u32::from(residency != Residency::Resident));
        let title = Title { span, lane: contents.lane_name(entry), note: note(residency, &wanted, times) };
        let subject = subject(span, &wanted);
        let mut reply = RecallReply { span, call: id, text: String::new(), subject, restored: Vec::new(), times };
        if wanted == Wanted::Whole {
            match residency {
                Residency::Resident => {
                    reply.text = title.says("in the window already, at its own place");
                    return Ok(Plan::new(Answering { reply, how: How::Said }));
                }
                Residency::Evicted => {
                    if let Some((text, plan)) = back::<St>(span, &title, limit, contents, counter)? {
                        reply.text = text;
                        let effect = Answering { reply, how: How::Restored(plan.effect) };
                        return Ok(Plan { fetch: plan.fetch, events: plan.events, ..Plan::new(effect) });
                    }
                }
                _ => {}
            }
        }
        let part = Part {
            title,
            wanted,
            room: limit.min(contents.free()),
            tokens: entry.tokens,
            evicted: residency == Residency::Evicted,
        };
        Ok(Plan { fetch: read.fetch, ..Plan::new(Answering { reply, how: How::Excerpt(read.effect, part) }) })
    }

    fn apply(
        Answering { mut reply, how }: Answering,
        fetched: Vec<Vec<u8>>,
        contents: &mut Contents,
        shared: &'w Shared<St>,
    ) -> RecallReply {
        match how {
            How::Said => {}
            How::Restored(effect) => {
                reply.restored = <Restore as Operation<'w, St>>::apply(effect, fetched, contents, shared);
            }
            How::Excerpt(found, part) => {
                let recalled = <Recall as Operation<'w, St>>::apply(found, fetched, contents, shared);
                reply.text = part.text(recalled.content(), &*shared.counter);
            }
        }
        if reply.times > 0 {
            contents.recalls.insert(reply.span, reply.times);
        }
        reply
    }
}

impl Part {
    fn text(&self, content: &Content, counter: &dyn TokenCounter) -> String {
        let Self { title, wanted, room, tokens, .. } = self;
        let Some(text) = content.as_text() else {
            return self.no_text(content.as_bytes());
        };
        let lines = text.split_inclusive('\n').collect();
        let excerpt = Excerpt { title, lines, room: *room, counter }.of(wanted);
        excerpt.unwrap_or_else(|| title.says(format_args!("{tokens} tokens, and no part of it fits into {room}")))
    }

    /// What bytes are, since no part of them can be shown.
    fn no_text(&self, bytes: &[u8]) -> String {
        let Self { title, wanted, room, tokens, evicted } = self;
        let what = format!("{} bytes of {}", bytes.len(), form(bytes));
        match (wanted, evicted) {
            (Wanted::Whole, true) => title.says(format_args!("{what}: {tokens} tokens, and there is room for {room}")),
            (_, true) => title.says(format_args!("{what}: no part of them can be shown, ask for the whole")),
            (_, false) => title.says(format_args!("{what}: no part of them can be shown")),
        }
    }
}

/// What is said, and the spans that come back.
type Back = (String, Plan<(Vec<SpanId>, Edit)>);

/// The span with its whole exchange, and what is then said, where both fit: into `limit`, and beside what the window shows
/// instead of its pointers.
fn back<St>(
    span: SpanId,
    title: &Title,
    limit: u64,
    contents: &Contents,
    counter: &dyn TokenCounter,
) -> Result<Option<Back>, RecallError> {
    let restore = Restore { lane: None, spans: vec![span] };
    let plan = <Restore as Operation<'_, St>>::plan(restore, contents, counter)?;
    let (spans, edit) = &plan.effect;
    let others: Vec<_> = spans.iter().copied().filter(|other| *other != span).collect();
    let with = if others.is_empty() { String::new() } else { format!(", with {} of its exchange", Ids(&others)) };
    let text = title.says(format_args!("in the window again, at its own place{with}"));
    let tokens = |span: &SpanId| contents.table.get(*span).map_or(0, |entry| u64::from(entry.tokens));
    let back = spans.iter().map(tokens).fold(0, u64::saturating_add);
    let (gone, come) = contents.pointers.delta(edit);
    let more = back.saturating_add(come).saturating_add(u64::from(counter.text(&text)?.tokens())).saturating_sub(gone);
    Ok((back <= limit && more <= contents.free()).then_some((text, plan)))
}

/// What there is to say beside the text itself.
fn note(residency: Residency, wanted: &Wanted, times: u32) -> String {
    let mut note = match residency {
        Residency::Resident if *wanted != Wanted::Whole => "; all of it is in the window, at its own place",
        Residency::Resident | Residency::Evicted | Residency::Discarded | Residency::Unrecorded => "",
        Residency::Replaced => "; a summary stands in its place, and `reground` of that brings it back",
        Residency::Retired => "; a summary that has left the window",
    }
    .to_owned();
    if times > MANY {
        let before = times.saturating_sub(1);
        note.push_str(&format!("; recalled {before} times before, so write down what you need of it"));
    }
    note
}

/// The part, as a later recall of the same names it.
fn subject(span: SpanId, wanted: &Wanted) -> String {
    match wanted {
        Wanted::Whole => span.to_string(),
        Wanted::Lines { from, to: Some(to) } => format!("{span}:{from}-{to}"),
        Wanted::Lines { from, to: None } => format!("{span}:{from}-"),
        Wanted::Search(words) => format!("{span}?{words}"),
    }
}

/// What bytes are, by how they begin.
fn form(bytes: &[u8]) -> &'static str {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => "a PNG image",
        [0xff, 0xd8, 0xff, ..] => "a JPEG image",
        [b'G', b'I', b'F', b'8', ..] => "a GIF image",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "a WebP image",
        [b'%', b'P', b'D', b'F', ..] => "a PDF document",
        _ => "no text",
    }
}
