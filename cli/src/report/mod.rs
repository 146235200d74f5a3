//! The report: one page for the person on call, with nothing to load and no text of a span unless it was asked for.

mod chart;
mod lineage;
mod page;
mod read;
mod replay;
mod sentences;
pub mod story;

pub use self::{page::page, read::story_of, replay::replayed};
