//! Summaries: finished, non-empty, smaller than their sources, and never without them (rules R3 to R6).

use super::{
    Operation, Selection, Shared,
    contents::{Contents, Derivation},
    gone::Loss,
    step::Plan,
    table::{Entry, Residency},
};
use crate::{
    Content, CounterError, Digest, Origin, Role, SelectionError, SpanId, SummarizeError, SummaryTextError, TokenCount,
    TokenCounter, Tombstone, Unexplained,
    error::explained,
    journal::Event,
    kind::{Derived, Evictable},
    pointer::Ids,
    store::Blob,
};

/// Why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finish {
    /// It was done.
    Stop,
    /// It reached the output limit.
    Length,
    /// It called a tool.
    ToolCall,
    /// It gave reasoning and no text.
    ReasoningOnly,
    /// It refused, or a filter did.
    Refused,
    /// The call failed; the text, if any, is an error's.
    Failed,
}

/// What a model answered when it was asked for a summary.
#[derive(Clone, Debug)]
pub struct ModelAnswer {
    /// Why it stopped.
    pub finish: Finish,
    /// Its text, when there was one.
    pub text: String,
}

impl ModelAnswer {
    /// An answer with its finish reason.
    pub fn new(finish: Finish, text: impl Into<String>) -> Self {
        Self { finish, text: text.into() }
    }
}

/// A model's finished answer: the only text that can become a summary (rule R6).
///
/// ```
/// use keepspan::{Finish, ModelAnswer, SummaryText};
///
/// let summary = SummaryText::try_from(ModelAnswer::new(Finish::Stop, "Files 1 to 9 are read; all use `i64`."))?;
/// assert!(SummaryText::try_from(ModelAnswer::new(Finish::Length, "Files 1 to 9 are")).is_err());
/// # Ok::<_, keepspan::SummaryTextError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SummaryText(String);

/// A summary written by a fixed template, no model asked.
pub(super) fn by_template(text: String) -> SummaryText {
    SummaryText(text)
}

impl TryFrom<ModelAnswer> for SummaryText {
    type Error = SummaryTextError;

    fn try_from(answer: ModelAnswer) -> Result<Self, SummaryTextError> {
        match answer.finish {
            Finish::Stop if answer.text.trim().is_empty() => Err(SummaryTextError::Empty),
            Finish::Stop => Ok(Self(answer.text)),
            Finish::Length => Err(SummaryTextError::Truncated),
            Finish::ToolCall => Err(SummaryTextError::ToolCall),
            Finish::ReasoningOnly => Err(SummaryTextError::ReasoningOnly),
            Finish::Refused => Err(SummaryTextError::Refused),
            Finish::Failed => Err(SummaryTextError::Failed),
        }
    }
}

/// The explicit permission to summarize summaries; its reason is logged (rule R4).
#[derive(Clone, Debug)]
pub struct Escalation(String);

impl Escalation {
    /// An escalation with the reason that whoever audits the window will read.
    ///
    /// # Errors
    /// When the reason is blank.
    pub fn because(reason: impl Into<String>) -> Result<Self, Unexplained> {
        explained("reason", reason).map(Self)
    }
}

/// Replaces spans by a summary; see [`Lane::summarize`](crate::Lane::summarize). Gives the summary's id.
#[derive(Debug)]
pub struct Summarize {
    pub(crate) lane: u16,
    pub(crate) sources: Selection,
    pub(crate) summary: SummaryText,
    pub(crate) into: u16,
    pub(crate) into_name: &'static str,
    pub(crate) same_window: bool,
    pub(crate) escalation: Option<Escalation>,
}

#[doc(hidden)]
#[derive(Debug)]
pub struct Summarized {
    entry: Entry,
    derivation: Derivation,
    escalation: Option<String>,
}

impl<'w, St> Operation<'w, St> for Summarize {
    type Output = SpanId;
    type Error = SummarizeError;
    type Effect = Summarized;
    // The tombstones of its sources must not be on record before the summary is proven readable.
    const BLOBS_FIRST: bool = true;

    fn plan(self, contents: &Contents, counter: &dyn TokenCounter) -> Result<Plan<Summarized>, SummarizeError> {
        if !self.same_window {
            return Err(SummarizeError::OtherWindow { lane: self.into_name });
        }
        contents.is_lane_of::<Derived>(self.into)?;
        match &self.escalation {
            None => contents.is_lane_of::<Evictable>(self.lane)?,
            Some(_) => contents.is_lane_of::<Derived>(self.lane)?,
        }
        let score = self.sources.score;
        let sources = contents.select(&self.sources.ids, self.lane, Residency::Resident)?;
        contents.no_half(&sources)?;
        if let Some(span) = sources.iter().copied().find(|source| contents.wires.is_opaque(*source)) {
            return Err(SelectionError::Opaque { span }.into());
        }
        let span = contents.table.next_id();
        let mut tombstones = Vec::with_capacity(sources.len());
        for &source in &sources {
            let tombstone = contents.tombstone(source, score, Some(span));
            tombstones.push(tombstone.ok_or(SelectionError::NotExternalized { span: source })?);
        }
        let mut entry = made(contents, self.into, span, &sources, &self.summary, counter)?;
        let of = tombstones.iter().map(Tombstone::tokens).fold(0_u64, u64::saturating_add);
        smaller(u64::from(entry.tokens), of)?;
        let blobs = sealed(&mut entry).map(|blob| (Some(span), blob)).into_iter().collect();
        let depth = depth(contents, &sources);
        let escalation = self.escalation.map(|Escalation(reason)| reason);
        Ok(Plan {
            events: events(contents, span, &entry, &sources, depth, escalation.clone(), &tombstones),
            blobs,
            ..Plan::new(Summarized { entry, derivation: Derivation { sources, depth }, escalation })
        })
    }

    fn apply(effect: Summarized, _: Vec<Vec<u8>>, contents: &mut Contents, _: &'w Shared<St>) -> SpanId {
        let Summarized { entry, derivation, escalation } = effect;
        let span = contents.replace(entry, derivation);
        if let Some(reason) = escalation {
            contents.escalated(span, &reason);
        }
        span
    }
}

impl Contents {
    /// A summary of summaries is no way back to what was seen.
    pub(crate) fn escalated(&mut self, span: SpanId, reason: &str) {
        self.mark_lossy(Loss::Escalated, format!("{span} summarizes summaries: {reason}"));
    }
}

/// The entry of a summary, counted and not yet [sealed](sealed): its text stands under a line that names its sources (rule R5).
pub(super) fn made(
    contents: &Contents,
    lane: u16,
    span: SpanId,
    sources: &[SpanId],
    summary: &SummaryText,
    counter: &dyn TokenCounter,
) -> Result<Entry, CounterError> {
    let text = format!("[{span}: summary of {}; recall any by id]\n{}", Ids(sources), summary.0);
    let count = counter.text(&text)?;
    Ok(Entry { durable: true, offered: true, ..entry(contents, lane, text, count) })
}

/// Hashes an entry's text, once: what is committed for it.
pub(super) fn sealed(entry: &mut Entry) -> Option<Blob> {
    let blob = Blob::new(entry.content.clone()?);
    entry.digest = *blob.digest();
    Some(blob)
}

pub(super) fn smaller(summary: u64, sources: u64) -> Result<(), SummarizeError> {
    if summary < sources { Ok(()) } else { Err(SummarizeError::NotSmaller { summary, sources }) }
}

/// One more than the deepest source.
fn depth(contents: &Contents, sources: &[SpanId]) -> u32 {
    let deepest = sources.iter().filter_map(|source| Some(contents.derivations.get(source)?.depth)).max();
    deepest.unwrap_or(0).saturating_add(1)
}

/// The entry of a text that a model wrote.
pub(super) fn entry(contents: &Contents, lane: u16, text: String, count: TokenCount) -> Entry {
    Entry {
        text: true,
        content: Some(Content::from(text)),
        digest: Digest::from_bytes([0; 32]),
        start: contents.pushed_tokens,
        tokens: count.tokens(),
        name: None,
        lane,
        certainty: count.certainty(),
        origin: Origin::Model,
        role: Role::Assistant,
        residency: Residency::Resident,
        durable: false,
        offered: false,
        exchange: false,
    }
}

fn events(
    contents: &Contents,
    span: SpanId,
    entry: &Entry,
    sources: &[SpanId],
    depth: u32,
    escalation: Option<String>,
    tombstones: &[Tombstone],
) -> Vec<Event> {
    let summary = contents.span_record(span, entry, Some(entry.digest));
    let first = Event::Summarized { summary, sources: sources.to_vec(), depth, escalation };
    let tombstones = tombstones.iter().map(|tombstone| Event::Evicted(tombstone.record().clone()));
    std::iter::once(first).chain(tombstones).collect()
}
