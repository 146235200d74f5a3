//! Where everything that a session mentions was seen last, by hash.

use serde_json::Value;

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

/// What the arguments of a call mention, each once, with its hash. Names of arguments are no mentions.
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
        let mut found: Vec<_> = mentioned(&arguments).into_iter().map(|(_, mention)| mention).collect();
        found.sort_unstable();
        assert_eq!(found, ["/src/a.rs", "24-bit", "getFgAnsi"]);
    }

    #[test]
    fn the_last_entry_counts() {
        let mut seen = LastSeen::default();
        seen.see("getFgAnsi and getBgAnsi", 3);
        seen.see("getFgAnsi", 7);
        assert_eq!(["getFgAnsi", "getBgAnsi", "getNone"].map(|word| seen.last(hash(word))), [Some(7), Some(3), None]);
    }
}
