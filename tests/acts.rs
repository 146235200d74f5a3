//! Actions that several tests run, and windows in which they may.

use std::{error::Error, fs::OpenOptions, io::Write as _, path::Path};

use keepspan::{Action, Episode, Failure, NewSpan, OpenError, SpanId, Window, store::Store};

use crate::Agent;

/// Can be made good; depends on two lanes.
#[derive(Action, Clone, Debug)]
#[action(state = Agent, requires(schema, target), name = "write")]
pub struct Write {
    /// Where to.
    pub to: String,
}

impl Write {
    /// A write to `to`.
    pub fn to(to: impl Into<String>) -> Self {
        Self { to: to.into() }
    }
}

/// Cannot be taken back, and a person has to agree.
#[derive(Action, Clone, Debug)]
#[action(state = Agent, requires(target), destructive, consent, name = "send")]
pub struct Send {
    /// The text.
    pub text: String,
}

/// Cannot be taken back.
#[derive(Action, Clone, Debug)]
#[action(state = Agent, requires(target), destructive, name = "erase")]
pub struct Erase {
    /// What.
    pub table: String,
}

/// What a window holds that may act.
#[derive(Clone, Copy, Debug)]
pub struct Ready {
    /// In `schema`.
    pub schema: SpanId,
    /// In `target`.
    pub target: SpanId,
    /// What a person said, in `rules`.
    pub yes: SpanId,
}

/// A new window that holds what the actions depend on; nothing of it is in the store yet.
///
/// # Errors
/// When it does not open.
pub fn ready<S: Store>(store: S, episode: &str) -> Result<(Window<Agent, S>, Ready), Box<dyn Error>> {
    let mut window = Window::open(store, Episode::new(episode, "p")).map_err(|error: OpenError| error)?;
    let ready = prepare(&mut window)?;
    Ok((window, ready))
}

/// Pushes what the actions depend on.
///
/// # Errors
/// When a span does not enter.
pub fn prepare<S: Store>(window: &mut Window<Agent, S>) -> Result<Ready, Box<dyn Error>> {
    let lanes = window.lanes();
    Ok(Ready {
        schema: lanes.schema.push(NewSpan::tool("describe_table", "users.id BIGINT"))?,
        target: lanes.target.push(NewSpan::human("staging"))?,
        yes: lanes.rules.push(NewSpan::human("yes, do"))?,
    })
}

/// An effect that lasts: one more line in a file.
///
/// # Errors
/// When the file cannot be written: whether it was is then unknown.
pub fn append(path: &Path, line: &str) -> Result<(), Failure> {
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    file.write_all(format!("{line}\n").as_bytes())?;
    Ok(file.sync_all()?)
}

/// The lines that were [appended](append).
pub fn lines(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}
