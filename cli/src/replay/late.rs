//! Where everything that a session mentions was seen last, by hash.

use super::mentions::{ByHash, hash, mentions};

/// The last entry that each mention was seen in. 16 bytes a mention, whatever the texts take.
#[derive(Debug, Default)]
pub struct LastSeen(ByHash<u32>);

impl LastSeen {
    /// Takes an entry's text in. O(length).
    pub fn see(&mut self, text: &str, entry: usize) {
        let entry = u32::try_from(entry).unwrap_or(u32::MAX);
        mentions(text, |mention| {
            self.0.insert(hash(mention), entry);
        });
    }

    /// The last entry with it.
    pub fn last(&self, hash: u64) -> Option<usize> {
        self.0.get(&hash).and_then(|entry| usize::try_from(*entry).ok())
    }
}

/// What a text mentions, each once, with its hash.
pub fn mentioned(text: &str) -> Vec<(u64, &str)> {
    let (mut known, mut all) = (ByHash::<()>::default(), Vec::new());
    mentions(text, |mention| {
        let hash = hash(mention);
        if known.insert(hash, ()).is_none() {
            all.push((hash, mention));
        }
    });
    all
}
