//! `actions`: what the agent did to the world, and what nobody knows whether it did.

use std::collections::BTreeMap;

use keepspan::{
    Digest,
    audit::{Happening, LogEntry},
};
use serde::Serialize;

use super::opened;
use crate::{
    args::Source,
    failure::Failure,
    output::{BAD, FAINT, Output, STRONG},
    words::{self, line},
};

/// One attempt, as far as the episode's log knows it.
#[derive(Serialize)]
struct Attempt<'a> {
    record: u64,
    time: Option<u64>,
    action: &'a str,
    attempt: u64,
    signature: Digest,
    #[serde(flatten)]
    state: State<'a>,
}

#[derive(Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
enum State<'a> {
    Done { sha256: Digest, settled: Option<&'a str> },
    Failed { why: &'a str },
    Refused { why: &'a str },
    NotDone { settled: &'a str },
    Uncertain { why: Option<&'a str> },
}

/// A line an attempt, oldest first.
pub fn actions(source: &Source, out: &mut Output) -> Result<(), Failure> {
    let history = opened(source)?.history;
    let mut attempts = BTreeMap::new();
    let mut order = Vec::new();
    for (entry, happening) in
        history.entries().iter().flat_map(|entry| entry.happenings.iter().map(move |h| (entry, h)))
    {
        if let Some(attempt) = told(entry, happening) {
            let key = (attempt.signature, attempt.attempt);
            match attempts.get_mut(&key) {
                None => {
                    order.push(key);
                    attempts.insert(key, attempt);
                }
                Some(before) => before.state = attempt.state,
            }
        }
    }
    let attempts = order.iter().filter_map(|key| attempts.get(key));
    if out.is_json() {
        return Ok(out.value(&attempts.collect::<Vec<_>>())?);
    }
    if order.is_empty() {
        out.line("no action on record")?;
    }
    for Attempt { record, time, action, attempt, signature, state } in attempts {
        let time = time.map_or_else(|| " ".repeat(23), words::time);
        let at = out.paint(FAINT, format_args!("{record:>6}  {time}"));
        let number = if *attempt > 1 { format!(" (attempt {attempt})") } else { String::new() };
        let state = match state {
            State::Done { settled: None, .. } => "done".to_owned(),
            State::Done { settled: Some(how), .. } => format!("done, as was found out: {how}"),
            State::Failed { why } => format!("failed without effect: {why}"),
            State::Refused { why } => format!("refused: {why}"),
            State::NotDone { settled } => format!("not done, as was found out: {settled}"),
            State::Uncertain { why } => {
                let why = why.map(|why| format!(": {why}")).unwrap_or_default();
                out.paint(BAD, line(&format!("uncertain: it may have taken effect{why}")))
            }
        };
        let signature = out.paint(FAINT, format_args!("{:.8}", signature.to_string()));
        out.line(format_args!("{at}  {signature}  {}{number}  {state}", out.paint(STRONG, line(action))))?;
    }
    Ok(())
}

fn told<'a>(entry: &LogEntry, happening: &'a Happening) -> Option<Attempt<'a>> {
    let (action, signature, attempt, state) = match happening {
        Happening::Intended { action, signature, attempt, .. } => {
            (action, signature, attempt, State::Uncertain { why: None })
        }
        Happening::Doubted { action, signature, attempt, why } => {
            (action, signature, attempt, State::Uncertain { why: Some(why) })
        }
        Happening::Done { action, signature, attempt, sha256, how } => {
            (action, signature, attempt, State::Done { sha256: *sha256, settled: how.as_deref() })
        }
        Happening::Failed { action, signature, attempt, why, refused, .. } => {
            (action, signature, attempt, if *refused { State::Refused { why } } else { State::Failed { why } })
        }
        Happening::NotDone { action, signature, attempt, how } => {
            (action, signature, attempt, State::NotDone { settled: how })
        }
        _ => return None,
    };
    let (record, time) = (entry.record, entry.time);
    Some(Attempt { record, time, action, attempt: *attempt, signature: *signature, state })
}
