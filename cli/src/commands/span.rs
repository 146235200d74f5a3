//! `show`, `tombstone` and `recall`: one span.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use keepspan::{
    Content, SpanId, Tombstone,
    audit::{History, SpanFacts, Standing},
    store::{Store, StoreError},
};
use serde::Serialize;

use super::{Opened, opened, turn};
use crate::{
    failure::Failure,
    output::{Output, STRONG},
    report::story::number,
    store::Source,
    told,
    words::{count, line, plain, several},
};

/// What `show` says, for programs.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    facts: &'a SpanFacts,
    #[serde(flatten)]
    standing: &'a Standing,
    entered: Option<u64>,
    turn: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sources: Option<&'a [SpanId]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    depth: Option<u32>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    content: Option<Text<'a>>,
}

/// Text as it is, and bytes as base64.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Text<'a> {
    Content(&'a str),
    Base64(String),
}

impl<'a> From<&'a Content> for Text<'a> {
    fn from(content: &'a Content) -> Self {
        match content.as_text() {
            Some(text) => Self::Content(text),
            None => Self::Base64(BASE64_STANDARD.encode(content.as_bytes())),
        }
    }
}

/// Everything that is known of a span.
pub fn show(source: &Source, span: SpanId, no_text: bool, out: &mut Output) -> Result<(), Failure> {
    let Opened { store, history } = opened(source)?;
    let (facts, standing) = found(&history, span)?;
    let has_text = !no_text && !matches!(standing, Standing::Gone { .. } | Standing::Unrecorded);
    let content = has_text.then(|| content(&store, facts)).transpose()?;
    let entered = history.entries().iter().find(|entry| entry.spans >= span.number());
    let derivation = history.derivation(span);
    if out.is_json() {
        return Ok(out.value(&Shown {
            facts,
            standing: &standing,
            entered: entered.map(|entry| entry.record),
            turn: entered.map(|entry| turn(&history, entry)),
            sources: derivation.map(|derivation| derivation.sources()),
            depth: derivation.map(|derivation| derivation.depth()),
            content: content.as_ref().map(Text::from),
        })?);
    }
    out.line(out.paint(STRONG, span))?;
    out.fields([
        ("lane", format!("{} ({})", line(facts.lane), facts.kind.attribute())),
        ("now", now(&standing)),
        ("said by", said_by(facts)),
        ("tokens", format!("{} ({}), from {} on", count(facts.tokens.into()), certainty(facts), count(facts.start))),
        ("bytes", format!("{}{}", count(facts.bytes), if facts.text { " of text" } else { "" })),
        (
            "sha256",
            facts.sha256.map_or_else(|| "left out: it could be guessed".to_owned(), |digest| digest.to_string()),
        ),
    ])?;
    if let Some(entry) = entered {
        out.fields([("entered", format!("in turn {}, by entry {}", turn(&history, entry), entry.record))])?;
    }
    if let Some(subject) = &facts.reads {
        out.fields([("reads", line(subject).into_owned())])?;
    }
    if let Some(derivation) = derivation {
        out.fields([("summary of", format!("{}, depth {}", told::numbers(derivation.sources()), derivation.depth()))])?;
    }
    let times = history.tombstones(span).count();
    if times > 0 {
        out.fields([("left", format!("{}; `keepspan tombstone` shows the record", several(number(times), "time")))])?;
    }
    if let Some(content) = content {
        out.line("")?;
        out.line(shown(&content))?;
    }
    Ok(())
}

fn now(standing: &Standing) -> String {
    match standing {
        Standing::Resident => "in the window".to_owned(),
        Standing::Pointer => "evicted: a pointer stands in its place".to_owned(),
        Standing::Replaced { by } => format!("evicted: the summary {by} stands in its place"),
        Standing::Retired => "out of the window: a summary that was re-grounded, or summarized itself".to_owned(),
        Standing::Gone { reason, recovery } => {
            format!("removed for good: {}; to recover: {}", line(reason), line(recovery))
        }
        Standing::Unrecorded => "lost: it entered, and no commit had it when its process ended".to_owned(),
        other => format!("{other:?}"),
    }
}

fn said_by(facts: &SpanFacts) -> String {
    let origin = format!("{:?}", facts.origin).to_lowercase();
    let name = facts.name.as_ref().map(|name| format!(" {}", line(name))).unwrap_or_default();
    format!("{origin}{name}, as {}", facts.role.name())
}

fn certainty(facts: &SpanFacts) -> String {
    format!("{:?}", facts.certainty).to_lowercase()
}

/// Text as it is, apart from what would act on the terminal.
pub fn shown(content: &Content) -> String {
    match content.as_text() {
        Some(text) => plain(text).into_owned(),
        None => format!(
            "({} that are no text; `keepspan recall` writes them)",
            several(number(content.as_bytes().len()), "byte")
        ),
    }
}

/// The record of every time that a span left.
pub fn tombstone(source: &Source, span: SpanId, out: &mut Output) -> Result<(), Failure> {
    let history = opened(source)?.history;
    found(&history, span)?;
    let tombstones: Vec<_> = history.tombstones(span).collect();
    if tombstones.is_empty() {
        return Err(Failure::Usage(format!(
            "{span} was never evicted or replaced by a summary, so it has no tombstone"
        )));
    }
    for tombstone in tombstones {
        if out.is_json() {
            out.value(tombstone)?;
        } else {
            told(tombstone, out)?;
        }
    }
    Ok(())
}

fn told(tombstone: &Tombstone, out: &mut Output) -> Result<(), Failure> {
    let range = tombstone.token_range();
    out.line(out.paint(STRONG, tombstone.span()))?;
    out.fields([
        ("lane", format!("{} ({})", line(tombstone.lane()), tombstone.kind().attribute())),
        ("tokens", format!("{}, from {} to {}", count(tombstone.tokens()), count(range.start), count(range.end))),
        ("policy", line(&told::policy(tombstone.policy())).into_owned()),
        ("sha256", tombstone.sha256().to_string()),
    ])?;
    if let Some(score) = tombstone.score() {
        out.fields([("score", score.to_string())])?;
    }
    if !tombstone.derivation().is_empty() {
        out.fields([("derived from", told::numbers(tombstone.derivation()))])?;
    }
    Ok(out.fields([match tombstone.replaced_by() {
        Some(summary) => ("replaced by", summary.to_string()),
        None => ("pointer", line(tombstone.pointer().as_str()).into_owned()),
    }])?)
}

/// The bytes as they entered, verified.
pub fn recall(source: &Source, span: SpanId, out: &mut Output) -> Result<(), Failure> {
    let Opened { store, history } = opened(source)?;
    let (facts, standing) = found(&history, span)?;
    match &standing {
        Standing::Gone { reason, recovery } => {
            return Err(Failure::Usage(format!(
                "{span} was removed for good ({}); to recover: {}",
                line(reason),
                line(recovery)
            )));
        }
        Standing::Unrecorded => {
            return Err(Failure::Usage(format!("{span} entered, and its text never reached the store")));
        }
        _ => {}
    }
    let content = content(&store, facts)?;
    if out.is_json() {
        #[derive(Serialize)]
        struct Recalled<'a> {
            span: SpanId,
            sha256: Option<keepspan::Digest>,
            #[serde(flatten)]
            content: Text<'a>,
        }
        return Ok(out.value(&Recalled { span, sha256: facts.sha256, content: Text::from(&content) })?);
    }
    if content.as_text().is_none() && out.is_terminal() {
        return Err(Failure::Usage(format!(
            "{span} is no text, and would confuse the terminal: redirect it to a file"
        )));
    }
    Ok(out.raw(content.as_bytes())?)
}

fn found(history: &History, span: SpanId) -> Result<(&SpanFacts, Standing), Failure> {
    if let Some(found) = history.span(span) {
        return Ok(found);
    }
    Err(Failure::Usage(match history.entered() {
        0 => format!("{span} does not exist: the episode has no spans"),
        last if span.number() <= last => format!("{span} entered, and nothing of it reached the store"),
        last => format!("{span} does not exist: the episode has s1 to s{last}"),
    }))
}

/// A span's bytes, compared with their digest.
pub fn content(store: &dyn Store, facts: &SpanFacts) -> Result<Content, Failure> {
    let digest = facts.sha256.ok_or_else(|| Failure::Usage(format!("{} never reached the store", facts.span)))?;
    let bytes = store.get(&digest)?;
    if keepspan::Digest::of(&bytes) != digest {
        return Err(StoreError::Corrupt { digest }.into());
    }
    Ok(match String::from_utf8(bytes) {
        Ok(text) if facts.text => Content::from(text),
        Ok(text) => Content::from(text.into_bytes()),
        Err(bytes) => Content::from(bytes.into_bytes()),
    })
}
