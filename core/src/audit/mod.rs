//! What happened in an episode, from its log alone and without the agent's own types: for whoever has to answer "what did
//! the agent know at turn 40?".
//!
//! ```
//! # use keepspan::{ContextState, Episode, EpisodeId, NewSpan, Spans, Window, store::MemoryStore};
//! # use std::sync::Arc;
//! use keepspan::audit::{self, History};
//! # #[derive(ContextState)]
//! # struct Agent { #[evictable(otherwise)] work: Spans }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let store = Arc::new(MemoryStore::default());
//! # let mut window = Window::<Agent, _>::open(store.clone(), Episode::new("run-7", "p"))?;
//! # window.lanes().route(NewSpan::human("Which port?"))?;
//! # window.lanes().route(NewSpan::model("8080."))?;
//! # drop(window.lanes().externalize().wait()?);
//! let episode = EpisodeId::new("run-7");
//! let history = History::read(&store, &episode)?;
//! let seen = history.at_turn(&store, 1)?; // what the model was sent for its first answer
//! assert_eq!(seen.messages[0].content().as_text(), Some("Which port?"));
//! assert!(audit::verify(&store, &episode, |_| {}).faults.is_empty());
//! # Ok(())
//! # }
//! ```

mod entry;
mod history;
mod rows;
mod verify;

pub use self::{
    entry::{Happening, LogEntry, SpanFacts, Standing},
    history::{AtTurn, AuditError, History},
    rows::{Rows, TombstoneRow, rows},
    verify::{Damage, Progress, Verified, verify},
};
