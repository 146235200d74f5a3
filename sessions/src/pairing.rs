//! Which call a result belongs to.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// The calls of a conversation that have no result yet. Ids are used again, so a result belongs to the nearest earlier call
/// of its id without one.
#[derive(Debug, Default)]
pub(crate) struct Pairing {
    /// By id, oldest first.
    open: HashMap<Arc<str>, Vec<Open>>,
    /// Whether the id was used, and by how many calls.
    used: HashMap<Arc<str>, u64>,
    calls: u64,
    minted: u64,
    minted_ids: HashSet<Arc<str>>,
}

#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) id: Arc<str>,
    pub(crate) tool: Arc<str>,
    pub(crate) line: u64,
    number: u64,
}

impl Pairing {
    /// Opens a call; whether an earlier one had its id.
    pub(crate) fn call(&mut self, id: &Arc<str>, tool: &Arc<str>, line: u64) -> bool {
        self.calls = self.calls.saturating_add(1);
        let open = Open { id: id.clone(), tool: tool.clone(), line, number: self.calls };
        self.open.entry(id.clone()).or_default().push(open);
        let used = self.used.entry(id.clone()).or_default();
        *used = used.saturating_add(1);
        *used > 1
    }

    /// Closes the nearest earlier call of the id that has no result.
    pub(crate) fn answer(&mut self, id: &str) -> Option<Open> {
        let calls = self.open.get_mut(id)?;
        let call = calls.pop();
        if calls.is_empty() {
            self.open.remove(id);
        }
        call
    }

    /// Whether a call of this id has no result.
    pub(crate) fn is_open(&self, id: &str) -> bool {
        self.open.contains_key(id)
    }

    /// The id of the oldest open call of `tool` among those whose ids were minted here.
    pub(crate) fn oldest_minted(&self, tool: Option<&str>) -> Option<Arc<str>> {
        let calls = self.open.values().flatten().filter(|call| self.minted_ids.contains(&call.id));
        let calls = calls.filter(|call| tool.is_none_or(|tool| *call.tool == *tool));
        calls.min_by_key(|call| call.number).map(|call| call.id.clone())
    }

    /// The id of the oldest open call, of `tool` where one is given: for results without an id.
    pub(crate) fn oldest(&self, tool: Option<&str>) -> Option<Arc<str>> {
        let calls = self.open.values().flatten().filter(|call| tool.is_none_or(|tool| *call.tool == *tool));
        calls.min_by_key(|call| call.number).map(|call| call.id.clone())
    }

    /// An id that no call of the conversation had.
    pub(crate) fn mint(&mut self) -> Arc<str> {
        loop {
            self.minted = self.minted.saturating_add(1);
            let id = format!("c{}", self.minted);
            if !self.used.contains_key(id.as_str()) {
                let id: Arc<str> = id.into();
                self.minted_ids.insert(id.clone());
                return id;
            }
        }
    }

    /// The open calls, in their order; the conversation is over.
    pub(crate) fn end(&mut self) -> Vec<Open> {
        let mut open: Vec<_> = std::mem::take(self).open.into_values().flatten().collect();
        open.sort_by_key(|call| call.number);
        open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_earlier_call_is_answered() {
        let mut pairing = Pairing::default();
        let (id, other) = (Arc::from("a"), Arc::from("b"));
        assert!(!pairing.call(&id, &"first".into(), 1));
        assert!(pairing.call(&id, &"second".into(), 2));
        assert!(!pairing.call(&other, &"third".into(), 3));
        assert_eq!(pairing.answer("a").map(|call| call.line), Some(2));
        assert_eq!(pairing.answer("a").map(|call| call.line), Some(1));
        assert!(pairing.answer("a").is_none());
        assert_eq!(pairing.end().iter().map(|call| call.line).collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn a_result_without_an_id_takes_the_oldest() {
        let mut pairing = Pairing::default();
        for (id, tool) in [("a", "x"), ("b", "y"), ("c", "y")] {
            pairing.call(&id.into(), &tool.into(), 1);
        }
        assert_eq!(pairing.oldest(None).as_deref(), Some("a"));
        assert_eq!(pairing.oldest(Some("y")).as_deref(), Some("b"));
        assert_eq!(pairing.oldest(Some("z")), None);
    }

    #[test]
    fn a_minted_id_is_new() {
        let mut pairing = Pairing::default();
        pairing.call(&"c1".into(), &"x".into(), 1);
        assert_eq!(&*pairing.mint(), "c2");
    }
}
