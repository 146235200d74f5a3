//! Where everything that a session mentions was seen last, by hash.

use std::ops::Range;

use serde_json::Value;

use super::mentions::{ByHash, hash, mentions};

/// The last entry that each mention was seen in. 16 bytes a mention, whatever the texts take.
#[derive(Debug, Default)]
pub struct LastSeen(ByHash<u32>);

impl LastSeen {
    /// Takes in what an entry's text mentions, by hash.
    pub fn see(&mut self, mentions: &[u64], entry: usize) {
        let entry = u32::try_from(entry).unwrap_or(u32::MAX);
        for hash in mentions {
            self.0.insert(*hash, entry);
        }
    }

    /// The last entry with it.
    pub fn last(&self, hash: u64) -> Option<usize> {
        self.0.get(&hash).and_then(|entry| usize::try_from(*entry).ok())
    }
}

/// Adds the hashes of what a text mentions, as often as it does; where they are. O(length).
pub fn hashes(text: &str, all: &mut Vec<u64>) -> Range<usize> {
    let start = all.len();
    mentions(text, |mention| all.push(hash(mention)));
    start..all.len()
}

/// What the arguments of a call mention, each once, with its hash. Their names are no mentions. O(length).
pub fn mentioned(arguments: &Value) -> Vec<(u64, &str)> {
    let (mut known, mut all) = (ByHash::<()>::default(), Vec::new());
    let mut open = vec![arguments];
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) => mentions(text, |mention| {
                let hash = hash(mention);
                if names(mention, text) && known.insert(hash, ()).is_none() {
                    all.push((hash, mention));
                }
            }),
            Value::Array(values) => open.extend(values),
            Value::Object(fields) => open.extend(fields.values()),
            _ => {}
        }
    }
    all
}

/// Whether a mention names something in an argument: `24-bit` in a sentence does not, and as an argument it is an id.
fn names(mention: &str, argument: &str) -> bool {
    mention == argument.trim() || mention.contains('/') || !mention.contains(['.', '-', '@'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_mention_what_they_name_once() {
        let arguments = serde_json::json!({ "file_path": "/src/a.rs", "edits": [{ "newText": "let 24-bit = getFgAnsi(getFgAnsi)" }], "id": "24-bit" });
        let (hashes, mut names): (Vec<_>, Vec<_>) = mentioned(&arguments).into_iter().unzip();
        assert_eq!(hashes, names.iter().map(hash).collect::<Vec<_>>());
        names.sort_unstable();
        assert_eq!(names, ["/src/a.rs", "24-bit", "getFgAnsi"]);
    }

    #[test]
    fn the_last_entry_counts() {
        let (mut seen, mut all) = (LastSeen::default(), Vec::new());
        for (text, entry) in [("getFgAnsi and getBgAnsi", 3), ("getFgAnsi", 7)] {
            let range = hashes(text, &mut all);
            seen.see(all.get(range).unwrap_or_default(), entry);
        }
        assert_eq!(["getFgAnsi", "getBgAnsi", "getNone"].map(|word| seen.last(hash(word))), [Some(7), Some(3), None]);
    }
}
