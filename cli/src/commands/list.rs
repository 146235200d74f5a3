//! `episodes`, `log` and `export`.

use keepspan::{
    Fidelity, JournalError,
    audit::{History, LogEntry},
};
use serde::Serialize;

use super::{opened, turn};
use crate::{
    failure::Failure,
    output::{BAD, FAINT, Output, STRONG},
    report::story::number,
    store::{Kept, Place, Source},
    told,
    words::{self, count, line, several},
};

/// One line of `episodes`.
#[derive(Serialize)]
struct Listed<'a> {
    episode: &'a str,
    entries: u64,
    #[serde(flatten)]
    log: Log,
}

/// What a log comes to, or why it cannot be read.
#[derive(Serialize)]
#[serde(untagged)]
enum Log {
    Read { spans: u64, turns: u64, began: Option<u64>, last: Option<u64>, lossy: bool },
    Damaged { fault: String },
}

impl Log {
    fn of(history: Result<History, JournalError>) -> Self {
        let history = match history {
            Ok(history) => history,
            Err(error) => return Self::Damaged { fault: error.to_string() },
        };
        let time = |entry: Option<&LogEntry>| entry.and_then(|entry| entry.time);
        Self::Read {
            spans: history.entered(),
            turns: number(history.turns().len()),
            began: time(history.entries().first()),
            last: time(history.entries().last()),
            lossy: history.fidelity() != Fidelity::Reversible,
        }
    }
}

/// O(records of all episodes).
pub fn episodes(place: &Place, out: &mut Output) -> Result<(), Failure> {
    let Kept { store, episodes: found, .. } = place.open()?;
    let listed = found.iter().map(|(episode, entries)| Listed {
        episode: episode.as_str(),
        entries: *entries,
        log: Log::of(History::read(&store, episode)),
    });
    if out.is_json() {
        return Ok(out.value(&listed.collect::<Vec<_>>())?);
    }
    if found.is_empty() {
        out.line("no episode yet")?;
    }
    for listed in listed {
        let name = out.paint(STRONG, line(listed.episode));
        let what = match listed.log {
            Log::Damaged { fault } => out.paint(BAD, line(&fault)),
            Log::Read { spans, turns, last, lossy, .. } => {
                let [turns, spans] = [several(turns, "turn"), several(spans, "span")];
                let entries = several(listed.entries, "log entry");
                let last = last.map(|ms| format!(", last {}", words::time(ms))).unwrap_or_default();
                let lossy = if lossy { out.paint(BAD, ", lossy") } else { String::new() };
                format!("{turns}, {spans}, {entries}{last}{lossy}")
            }
        };
        out.line(format_args!("{name}  {what}"))?;
    }
    Ok(())
}

/// A line an entry, with what a request took after it.
pub fn log(source: &Source, out: &mut Output) -> Result<(), Failure> {
    let history = opened(source)?.history;
    let mut fixed = 0;
    for entry in history.entries() {
        let turn = turn(&history, entry);
        fixed = super::fixed(entry, fixed);
        if out.is_json() {
            exported(&history, entry, turn, out)?;
            continue;
        }
        let said: Vec<_> = told::entry(entry).into_iter().map(|told| told.text).collect();
        let time = entry.time.map_or_else(|| " ".repeat(23), words::time);
        let at = out.paint(FAINT, format_args!("{:>6}  {time}  turn {turn:<5}", entry.record));
        let said = if said.is_empty() { "-".to_owned() } else { said.join("; ") };
        out.line(format_args!("{at} {:>9}  {}", count(entry.utilization.saturating_add(fixed)), line(&said)))?;
    }
    match told::gap(&history).filter(|_| !out.is_json()) {
        Some(gap) => Ok(out.line(out.paint(BAD, gap))?),
        None => Ok(()),
    }
}

/// An entry as a program reads it.
#[derive(Serialize)]
struct Exported<'a> {
    episode: &'a str,
    turn: u64,
    #[serde(flatten)]
    entry: &'a LogEntry,
}

fn exported(history: &History, entry: &LogEntry, turn: u64, out: &mut Output) -> Result<(), Failure> {
    Ok(out.value(&Exported { episode: history.episode().as_str(), turn, entry })?)
}

/// JSON lines, episode after episode.
pub fn export(source: &Source, out: &mut Output) -> Result<(), Failure> {
    let kept = source.place.open()?;
    for episode in source.episodes(&kept)? {
        let history = History::read(&kept.store, &episode)?;
        for entry in history.entries() {
            exported(&history, entry, turn(&history, entry), out)?;
        }
    }
    Ok(())
}
