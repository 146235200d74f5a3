//! Where everything that a session mentions was seen last, by hash.

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

/// The hashes of what a text mentions, as often as it does. O(length).
pub fn hashes(text: &str) -> Vec<u64> {
    // There are about as many.
    let mut all = Vec::with_capacity(text.len() / 32);
    mentions(text, |mention| all.push(hash(mention)));
    all
}

/// What the arguments of a call mention, each once.
#[derive(Debug, Default)]
pub struct Mentioned {
    pub hashes: Vec<u64>,
    /// A line each: no mention has a line end in it.
    names: String,
}

impl Mentioned {
    /// Names of arguments are no mentions. O(length).
    pub fn by(arguments: &Value) -> Self {
        let mut all = Self::default();
        for (hash, mention) in mentioned(arguments) {
            all.hashes.push(hash);
            all.names.push_str(mention);
            all.names.push('\n');
        }
        all
    }

    /// The mention that is at `at` among the hashes. O(mentions).
    pub fn name(&self, at: usize) -> &str {
        self.names.lines().nth(at).unwrap_or_default()
    }
}

fn mentioned(arguments: &Value) -> Vec<(u64, &str)> {
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
        let found = Mentioned::by(&arguments);
        let mut names: Vec<_> = (0..found.hashes.len()).map(|at| found.name(at)).collect();
        assert_eq!(found.hashes, names.iter().map(hash).collect::<Vec<_>>());
        names.sort_unstable();
        assert_eq!(names, ["/src/a.rs", "24-bit", "getFgAnsi"]);
    }

    #[test]
    fn the_last_entry_counts() {
        let mut seen = LastSeen::default();
        seen.see(&hashes("getFgAnsi and getBgAnsi"), 3);
        seen.see(&hashes("getFgAnsi"), 7);
        assert_eq!(["getFgAnsi", "getBgAnsi", "getNone"].map(|word| seen.last(hash(word))), [Some(7), Some(3), None]);
    }
}
