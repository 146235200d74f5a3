//! What an agent did to the world: each attempt at an action, and what is known of it.

use std::collections::BTreeMap;

use keepspan::{
    Digest,
    audit::{Happening, History, LogEntry},
};
use serde::Serialize;

use crate::words::short;

/// One attempt, as far as the episode's log knows it.
#[derive(Clone, Debug, Serialize)]
pub struct Attempt {
    /// The log entry that it is first in.
    pub record: u64,
    pub time: Option<u64>,
    pub action: String,
    /// What the request is, in words, where its type says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    pub attempt: u64,
    pub signature: Digest,
    /// Why it ran although its request was on record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeats: Option<String>,
    #[serde(flatten)]
    pub state: State,
}

/// What became of an attempt.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum State {
    Done { sha256: Digest, settled: Option<String> },
    Failed { why: String },
    Refused { why: String },
    NotDone { settled: String },
    Uncertain { why: Option<String> },
}

impl Attempt {
    pub fn is_uncertain(&self) -> bool {
        matches!(self.state, State::Uncertain { .. })
    }

    /// The action, what the request is, and the number of an attempt that is not its first.
    pub fn name(&self) -> String {
        let number = if self.attempt > 1 { format!(" (attempt {})", self.attempt) } else { String::new() };
        let about = self.about.as_ref().map(|about| format!(" {about}")).unwrap_or_default();
        format!("{}{about}{number}", self.action)
    }

    /// What became of it, in words.
    pub fn told(&self) -> String {
        let state = match &self.state {
            State::Done { settled: None, .. } => "done".to_owned(),
            State::Done { settled: Some(how), .. } => format!("done, as was found out: {how}"),
            State::Failed { why } => format!("failed without effect: {why}"),
            State::Refused { why } => format!("refused: {why}"),
            State::NotDone { settled } => format!("not done, as was found out: {settled}"),
            State::Uncertain { why: Some(why) } => format!("uncertain: it may have taken effect: {why}"),
            State::Uncertain { why: None } => {
                "uncertain: no outcome is on record; its process stopped, its future was dropped, or it runs now"
                    .to_owned()
            }
        };
        let repeats = self.repeats.as_ref().map(|why| format!("; repeated: {why}")).unwrap_or_default();
        format!("{state}{repeats}")
    }
}

/// Which request, and which attempt at it: tells the attempts of one action apart, in a sentence.
pub fn which(signature: Digest, attempt: u64) -> String {
    let number = if attempt > 1 { format!(", attempt {attempt}") } else { String::new() };
    format!("{}{number}", short(signature))
}

/// The attempts of an episode's own log, oldest first: another episode may have settled one. O(entries).
pub fn attempts(history: &History) -> Vec<Attempt> {
    let mut attempts: Vec<Attempt> = Vec::new();
    let mut places = BTreeMap::new();
    let happenings = history.entries().iter().flat_map(|entry| entry.happenings.iter().map(move |one| (entry, one)));
    for attempt in happenings.filter_map(|(entry, happening)| attempt(entry, happening)) {
        let place = *places.entry((attempt.signature, attempt.attempt)).or_insert(attempts.len());
        match attempts.get_mut(place) {
            Some(before) => before.state = attempt.state,
            None => attempts.push(attempt),
        }
    }
    attempts
}

fn attempt(entry: &LogEntry, happening: &Happening) -> Option<Attempt> {
    let (action, signature, attempt, state) = match happening {
        Happening::Intended { action, signature, attempt, .. } => {
            (action, signature, attempt, State::Uncertain { why: None })
        }
        Happening::Doubted { action, signature, attempt, why } => {
            (action, signature, attempt, State::Uncertain { why: Some(why.clone()) })
        }
        Happening::Done { action, signature, attempt, sha256, how } => {
            (action, signature, attempt, State::Done { sha256: *sha256, settled: how.clone() })
        }
        Happening::Failed { action, signature, attempt, why, refused, .. } => {
            let why = why.clone();
            (action, signature, attempt, if *refused { State::Refused { why } } else { State::Failed { why } })
        }
        Happening::NotDone { action, signature, attempt, how } => {
            (action, signature, attempt, State::NotDone { settled: how.clone() })
        }
        _ => return None,
    };
    let (about, repeats) = match happening {
        Happening::Intended { about, repeats, .. } => (about.clone(), repeats.clone()),
        _ => (None, None),
    };
    let (record, time, action) = (entry.record, entry.time, action.clone());
    Some(Attempt { record, time, action, about, attempt: *attempt, signature: *signature, repeats, state })
}
