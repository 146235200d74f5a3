//! One file through keepspan: each conversation in a window of its own.

use std::{collections::HashSet, sync::Arc};

use keepspan::{
    Budget, EpisodeId, Limits, TokenCounter,
    store::{MemoryStore, Store},
};
use keepspan_sessions::Conversation as Begun;

use super::{ahead::Ready, conversation::Running, outcome::Outcome, script::Ask};
use crate::{args::Policy, failure::Failure};

/// How a file is replayed.
pub struct Settings {
    pub limits: Limits,
    pub budget: Budget,
    pub counter: Arc<dyn TokenCounter>,
    pub policy: Policy,
    pub script: Vec<Ask>,
    pub only: Option<String>,
}

impl Settings {
    /// What a text takes; one that cannot be counted takes nothing.
    pub fn count(&self, text: &str) -> u64 {
        self.counter.text(text).map_or(0, |count| count.tokens().into())
    }

    /// Whether a conversation is replayed.
    pub fn replays(&self, begun: &Begun) -> bool {
        let only = self.only.as_deref();
        only.is_none_or(|only| *begun.name == *only || begun.number.to_string() == only)
    }
}

/// A store of whatever kind.
pub type Shared = Arc<dyn Store>;

/// A file's conversations, one after the other.
pub struct Replay<'a> {
    settings: &'a Settings,
    /// Where all of them go; a store in memory for each where there is none.
    store: Option<Shared>,
    /// Whether the store stays.
    kept: bool,
    /// The episodes' names, which one store has once each.
    names: &'a mut HashSet<String>,
    current: Option<Running<'a>>,
    done: Vec<Outcome>,
}

impl<'a> Replay<'a> {
    /// Replays into `store`, which is `kept`, or into memory, under names that are none of `names`.
    pub fn new(settings: &'a Settings, store: Option<Shared>, kept: bool, names: &'a mut HashSet<String>) -> Self {
        Self { settings, store, kept, names, current: None, done: Vec::new() }
    }

    /// Takes a step in, with the hashes of all mentions.
    ///
    /// # Errors
    /// When the window or the store fails.
    pub fn step(&mut self, step: &Ready, hashes: &[u64]) -> Result<(), Failure> {
        match (step, &mut self.current) {
            (Ready::Begins(begun), _) => self.begin(begun),
            (Ready::Entry(told), Some(running)) => running.entry(told, hashes),
            (Ready::Compacted(compaction), Some(running)) => running.compacted(compaction),
            _ => Ok(()),
        }
    }

    fn begin(&mut self, begun: &Begun) -> Result<(), Failure> {
        self.end()?;
        if self.settings.replays(begun) {
            let name = self.name(&begun.name);
            let store = self.store.clone().unwrap_or_else(|| Arc::new(MemoryStore::new()));
            self.current = Some(Running::open(self.settings, store, name, begun.place.line)?);
        }
        Ok(())
    }

    /// A name that no other episode of the store has, and none is too long for.
    fn name(&mut self, name: &str) -> String {
        let most = EpisodeId::MAX_BYTES.saturating_sub(16);
        let end = (0..=most.min(name.len())).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
        let name = Some(name.get(..end).unwrap_or_default()).filter(|name| !name.is_empty()).unwrap_or("session");
        let numbered = (2_u64..).map(|number| format!("{name} ({number})"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        let free = names.find(|name| !self.names.contains(name)).unwrap_or_default();
        self.names.insert(free.clone());
        free
    }

    fn end(&mut self) -> Result<(), Failure> {
        if let Some(running) = self.current.take() {
            self.done.push(running.finish(self.kept)?);
        }
        Ok(())
    }

    /// The file ended.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    pub fn finish(mut self) -> Result<Vec<Outcome>, Failure> {
        self.end()?;
        Ok(self.done)
    }
}
