//! Calls that wait for their results.

use std::{collections::HashMap, hash::Hash, mem};

use super::{
    Rule,
    judge::{At, Judge},
};

/// Calls by what names them, answered ones too, until [`close`](Self::close).
#[derive(Debug)]
pub(super) struct Calls<K> {
    calls: HashMap<K, (At, bool)>,
}

impl<K: Eq + Hash> Calls<K> {
    pub(super) fn new() -> Self {
        Self { calls: HashMap::new() }
    }

    /// An id may come again once its call is answered.
    pub(super) fn call(&mut self, judge: &mut Judge, id: K, at: At) {
        if self.calls.get(&id).is_some_and(|(_, answered)| !answered) {
            return judge.found(at, Rule::Duplicate);
        }
        self.calls.insert(id, (at, false));
    }

    pub(super) fn answer(&mut self, judge: &mut Judge, id: &K, at: At) {
        match self.calls.get_mut(id) {
            Some((_, answered)) if !*answered => *answered = true,
            Some(_) => judge.found(at, Rule::Duplicate),
            None => judge.found(at, Rule::Orphan),
        }
    }

    pub(super) fn knows(&self, id: &K) -> bool {
        self.calls.contains_key(id)
    }

    /// No result can come any more.
    pub(super) fn close(&mut self, judge: &mut Judge) {
        // Not drained: that costs the room of the largest turn each time.
        for (at, answered) in mem::take(&mut self.calls).into_values() {
            if !answered {
                judge.found(at, Rule::Unanswered);
            }
        }
    }
}
