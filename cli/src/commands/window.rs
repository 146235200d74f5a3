//! `at`: the window at a turn.

use keepspan::{Message, Shown, audit::AtTurn};
use serde::Serialize;

use super::{Opened, opened, span::shown};
use crate::{
    failure::Failure,
    output::{FAINT, Output, STRONG},
    report::story::number,
    store::Source,
    told,
    words::{count, line, several},
};

/// A message, for programs.
#[derive(Serialize)]
struct Sent<'a> {
    role: &'static str,
    lane: &'a str,
    shown: &'static str,
    spans: [u64; 2],
    tool: Option<&'a str>,
    tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
}

#[derive(Serialize)]
struct Window<'a> {
    turn: u64,
    answer: u64,
    policy: String,
    utilization: u64,
    messages: Vec<Sent<'a>>,
}

/// What the model was sent at its turn.
pub fn at(source: &Source, turn: u64, no_text: bool, out: &mut Output) -> Result<(), Failure> {
    let Opened { store, history } = opened(source)?;
    let window = history.at_turn(&store, turn)?;
    if out.is_json() {
        let messages = window.messages.iter().map(|message| sent(message, no_text)).collect();
        let AtTurn { turn, answer, utilization, .. } = window;
        let policy = told::policy(&window.policy);
        return Ok(out.value(&Window { turn, answer: answer.number(), policy, utilization, messages })?);
    }
    let turns = number(history.turns().len());
    let (messages, tokens) = (several(number(window.messages.len()), "message"), count(window.utilization));
    let title = format!(
        "turn {turn} of {turns}: the model was sent {messages}, {tokens} tokens, and answered {}",
        window.answer
    );
    out.line(out.paint(STRONG, title))?;
    out.line(out.paint(FAINT, format_args!("policy {}", line(&told::policy(&window.policy)))))?;
    for message in &window.messages {
        let (what, [first, last]) = what(message);
        let span = if first == last { format!("s{first}") } else { format!("s{first} to s{last}") };
        let tool = message.name().map(|name| format!(" {}", line(name))).unwrap_or_default();
        let what = if what == "span" { String::new() } else { format!(" ({what})") };
        let head = format!(
            "{span}{what}  {}{tool}  {}, {} tokens",
            message.role().name(),
            line(message.lane()),
            message.tokens()
        );
        out.line("")?;
        out.line(out.paint(STRONG, head))?;
        if !no_text {
            out.line(shown(message.content()))?;
        }
    }
    Ok(())
}

fn sent(message: &Message, no_text: bool) -> Sent<'_> {
    let (shown, spans) = what(message);
    let content = (!no_text).then(|| message.content().as_text().map(str::to_owned)).flatten();
    Sent {
        role: message.role().name(),
        lane: message.lane(),
        shown,
        spans,
        tool: message.name(),
        tokens: message.tokens(),
        content,
    }
}

/// What a message is, with the first and the last span it shows.
fn what(message: &Message) -> (&'static str, [u64; 2]) {
    let (what, first, last) = match message.shown() {
        Shown::Span(span) => ("span", span, span),
        Shown::Pointer(first, last) => ("pointer", first, last),
        Shown::Summary(span) => ("summary", span, span),
        Shown::Discarded(span) => ("removed", span, span),
        _ => return ("other", [0, 0]),
    };
    (what, [first.number(), last.number()])
}
