//! One function a command.

mod actions;
mod list;
mod migrate;
mod replay;
mod report;
mod span;
mod verify;
mod window;

use std::sync::Arc;

use keepspan::{
    audit::{Happening, History, LogEntry},
    store::Store,
};

pub use self::{
    actions::actions,
    list::{episodes, export, log},
    migrate::migrate,
    replay::replay,
    report::report,
    span::{content, recall, show, tombstone},
    verify::verify,
    window::at,
};
use crate::{failure::Failure, report::story::number, store::Source};

/// A store with the history of the episode that is meant.
struct Opened {
    store: Arc<dyn Store>,
    history: History,
}

fn opened(source: &Source) -> Result<Opened, Failure> {
    let kept = source.place.open()?;
    let history = History::read(&kept.store, &source.episode(&kept)?)?;
    Ok(Opened { store: kept.store, history })
}

/// The turn that an entry belongs to: how often the model had spoken by then.
pub fn turn(history: &History, entry: &LogEntry) -> u64 {
    number(history.turns().partition_point(|answer| answer.number() <= entry.spans))
}

/// What every request takes beside the window after an entry, in tokens: `before` unless the budget changed.
pub fn fixed(entry: &LogEntry, before: u64) -> u64 {
    let budgets = entry.happenings.iter().rev();
    let mut fixed =
        budgets.filter_map(|one| if let Happening::Budget { fixed, .. } = one { Some(*fixed) } else { None });
    fixed.next().unwrap_or(before)
}
