//! One conversation, replayed in one way: what a process is told, and what it has come to, both in the folder that it works
//! in. The process that takes over from a killed one finds them there.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    calls::{Conversation, Turn, Write},
    kept::Kept,
    line::{Faults, Line},
    place::Place,
    plain::Plain,
    service::latest,
};

/// The tokens that the agent's memory may take, four bytes each, beside what never leaves.
pub const BUDGET: u64 = 2_000;

/// How the calls of a conversation are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Every one as it comes.
    Every,
    /// By an agent that looks into its list of messages first.
    List,
    /// On keepspan's permits.
    Keepspan,
}

impl Mode {
    pub const ALL: [Self; 3] = [Self::Every, Self::List, Self::Keepspan];
}

/// What a process is to do.
#[derive(Debug, Serialize, Deserialize)]
pub struct Job {
    pub mode: Mode,
    pub conversation: Conversation,
    pub faults: Faults,
}

/// What became of the calls that were not sent or not answered, and of the agent's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Done before: the outcome of then was given.
    pub given_back: u64,
    /// Failed before, and nothing it depends on had changed.
    pub refused: u64,
    /// What it depends on was not to be had.
    pub denied: u64,
    /// No answer came, whatever had become of the call.
    pub unanswered: u64,
    /// Spans that left the window, or messages that left the list.
    pub left: u64,
}

/// How far a conversation has come.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Progress {
    /// The turn that is next.
    pub next: usize,
    pub tally: Tally,
    /// The agent's list of messages, where that is its memory.
    pub list: Vec<(String, u64)>,
}

/// An agent that the turns of a conversation are given to.
pub trait Agent {
    /// Takes in what was said or read.
    fn takes(&mut self, turn: &Turn, progress: &mut Progress) -> Result<()>;

    /// Makes a write call, or not.
    fn calls(&mut self, at: usize, write: &Write, line: &Line, progress: &mut Progress) -> Result<()>;
}

/// Goes on with the job of a folder to its end.
pub fn work(folder: &Path, place: &Place) -> Result<()> {
    let job: Job = load(&folder.join("job.json"))?.context("no job.json in the folder")?;
    let at = folder.join("progress.json");
    let mut progress: Progress = load(&at)?.unwrap_or_default();
    let line = Line::open(&folder.join("airline.db"), &job.conversation, job.faults)?;
    let mut agent: Box<dyn Agent> = match job.mode {
        Mode::Every => Box::new(Plain { remembers: false }),
        Mode::List => Box::new(Plain { remembers: true }),
        Mode::Keepspan => Box::new(Kept::open(&folder.join("agent.db"), place)?),
    };
    for (number, turn) in job.conversation.turns.iter().enumerate().skip(progress.next) {
        match turn {
            Turn::Write(write) => agent.calls(number, write, &line, &mut progress)?,
            Turn::TopUp(method, balance) => line.airline.top_up(method, *balance)?,
            turn => agent.takes(turn, &mut progress)?,
        }
        progress.next = number.saturating_add(1);
        save(&at, &progress)?;
    }
    Ok(())
}

/// Why a request that was done is wanted once more: the conversation says so, or what it did does not stand any more.
pub fn wanted_again(at: usize, write: &Write, line: &Line) -> Result<Option<String>> {
    let effects = line.airline.effects()?;
    let undone = || Some(format!("undone since by `{}`", latest(&effects, &write.request)?.1?.request.tool));
    // With the turn, so that the reason tells this repeat from any other.
    Ok(write.again.clone().or_else(undone).map(|why| format!("{why} (turn {at})")))
}

/// What a JSON file holds; none where there is no file.
pub fn load<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    if !path.exists() {
        return Ok(None);
    }
    let text = fs::read_to_string(path)?;
    Ok(Some(serde_json::from_str(&text).with_context(|| path.display().to_string())?))
}

/// Writes beside the file first, so that a process that is killed leaves the old one or the new one.
pub fn save(path: &Path, value: &impl Serialize) -> Result<()> {
    let beside = path.with_extension("new");
    fs::write(&beside, serde_json::to_vec(value)?)?;
    Ok(fs::rename(beside, path)?)
}
