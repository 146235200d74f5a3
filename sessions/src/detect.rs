//! Which format a file has, by its beginning.

use std::collections::BTreeMap;

use crate::{DetectError, Format, formats};

/// Bytes of the beginning that are looked at.
pub(crate) const MAX_HEAD: usize = 64 << 10;
/// Different values kept of one key.
const MAX_VALUES: usize = 64;
/// Keys deeper than this are not looked at.
const MAX_DEPTH: usize = 12;

impl Format {
    /// The format of the file that begins with `head`, 64 KB or what there is; more is not looked at. The name decides where
    /// the text does not.
    ///
    /// # Errors
    /// The file is empty, or looks like none of them.
    pub fn detect(head: &[u8], file_name: Option<&str>) -> Result<Self, DetectError> {
        let head = Head::new(head, file_name);
        if head.text.trim().is_empty() {
            return Err(DetectError::Empty);
        }
        let known = formats::LOOKS_LIKE.iter().find(|(_, looks_like)| looks_like(&head));
        known.map(|(format, _)| *format).or_else(|| by_name(head.name.as_deref()?)).ok_or(DetectError::Unknown)
    }
}

/// What agents call their files, where the beginning holds nothing but what a person wrote.
fn by_name(name: &str) -> Option<Format> {
    match name {
        name if name.starts_with(".aider.chat.history") => Some(Format::Aider),
        name if name.ends_with(".traj.json") => Some(Format::MiniSweAgent),
        name if name.ends_with(".traj") => Some(Format::SweAgent),
        name if name.starts_with("rollout-") && name.ends_with(".jsonl") => Some(Format::Codex),
        _ => None,
    }
}

/// The beginning of a file: the keys in it and their short texts, whether it ends inside a value or not.
pub(crate) struct Head {
    /// The text, up to the first byte that is no UTF-8.
    pub(crate) text: String,
    /// The file's name, without its folder.
    name: Option<String>,
    /// Whether it is lines of JSON.
    pub(crate) lines: bool,
    /// Short texts by path: `messages[].role`.
    keys: BTreeMap<String, Vec<String>>,
}

impl Head {
    pub(crate) fn new(bytes: &[u8], file_name: Option<&str>) -> Self {
        let bytes = bytes.get(..MAX_HEAD).unwrap_or(bytes);
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                bytes.get(..error.valid_up_to()).and_then(|text| str::from_utf8(text).ok()).unwrap_or_default()
            }
        };
        let name = file_name.and_then(|name| name.rsplit(['/', '\\']).next()).map(Into::into);
        let mut head =
            Self { text: text.trim_start_matches('\u{feff}').into(), name, lines: false, keys: BTreeMap::new() };
        let text = std::mem::take(&mut head.text);
        // A document can begin with a line that is a bracket alone, or be one line; lines of JSON are whole objects, but
        // for junk among them.
        let first = text.lines().find(|line| line.trim_start().starts_with('{')).filter(|_| !text.starts_with('['));
        head.lines = first.is_some_and(|line| serde_json::from_str::<serde::de::IgnoredAny>(line).is_ok())
            && text.trim_end().lines().count() > 1;
        if head.lines {
            text.lines().for_each(|line| head.scan(line));
        } else {
            head.scan(&text);
        }
        head.text = text;
        head
    }

    /// Whether any value stands at the path: `messages[].role`, of a list at the top `[].role`.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.keys.contains_key(path)
    }

    /// Whether this text stands at the path.
    pub(crate) fn says(&self, path: &str, value: &str) -> bool {
        self.keys.get(path).is_some_and(|values| values.iter().any(|one| one == value))
    }

    /// Whether any of these texts stands at the path.
    pub(crate) fn says_any(&self, path: &str, values: &[&str]) -> bool {
        values.iter().any(|value| self.says(path, value))
    }

    /// Notes the keys of one value, as far as it goes.
    fn scan(&mut self, text: &str) {
        let mut walk = Walk { stack: Vec::new(), path: String::new(), expects_key: false };
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            let after = rest.get(next.len_utf8()..).unwrap_or_default();
            rest = match next {
                '"' => {
                    let (string, after) = string(after);
                    let Some(string) = string else { return };
                    self.string(&mut walk, string);
                    after
                }
                '{' | '[' => {
                    self.note(&walk, None);
                    walk.open(next);
                    after
                }
                '}' | ']' => {
                    walk.close();
                    after
                }
                ',' => {
                    walk.next();
                    after
                }
                ':' | ' ' | '\t' | '\r' | '\n' => after,
                _ => {
                    self.note(&walk, None);
                    rest.get(rest.find([',', '}', ']', '"']).unwrap_or(rest.len())..).unwrap_or_default()
                }
            };
        }
    }

    fn string(&mut self, walk: &mut Walk, string: &str) {
        if walk.expects_key {
            walk.key(string);
        } else {
            self.note(walk, Some(string));
        }
    }

    fn note(&mut self, walk: &Walk, value: Option<&str>) {
        if walk.stack.len() > MAX_DEPTH {
            return;
        }
        let values = self.keys.entry(walk.path.clone()).or_default();
        if let Some(value) = value.filter(|value| value.len() <= 64 && values.len() < MAX_VALUES)
            && !values.iter().any(|one| one == value)
        {
            values.push(value.into());
        }
    }
}

/// The place in the value that is scanned.
struct Walk {
    /// Opening brackets, with the length of the path before them.
    stack: Vec<(char, usize)>,
    path: String,
    expects_key: bool,
}

impl Walk {
    fn open(&mut self, bracket: char) {
        self.stack.push((bracket, self.path.len()));
        if bracket == '[' {
            self.path.push_str("[]");
        }
        self.expects_key = bracket == '{';
    }

    fn close(&mut self) {
        if let Some((_, length)) = self.stack.pop() {
            self.path.truncate(length);
        }
        self.expects_key = false;
    }

    fn next(&mut self) {
        if let Some((bracket, length)) = self.stack.last() {
            self.expects_key = *bracket == '{';
            if self.expects_key {
                self.path.truncate(*length);
            }
        }
    }

    fn key(&mut self, key: &str) {
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(key);
        self.expects_key = false;
    }
}

/// The string that begins here, without its quote, and what follows; `None` where it does not end.
fn string(text: &str) -> (Option<&str>, &str) {
    let mut from = 0_usize;
    loop {
        let Some(at) = text.get(from..).and_then(|rest| rest.find(['"', '\\'])) else { return (None, "") };
        let at = from.saturating_add(at);
        if text.as_bytes().get(at) == Some(&b'"') {
            return (text.get(..at), text.get(at.saturating_add(1)..).unwrap_or_default());
        }
        let escaped = text.get(at.saturating_add(1)..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8);
        from = at.saturating_add(1).saturating_add(escaped);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_short_texts_of_a_head_that_is_cut() {
        let head =
            Head::new(br#"{"a":{"b":[{"c":"x\"y"},{"c":1,"d":[]}]},"e":"z","f":{"g":"cut of"#, Some("dir/name.json"));
        for path in ["a", "a.b", "a.b[]", "a.b[].c", "a.b[].d", "e", "f"] {
            assert!(head.has(path), "{path}");
        }
        assert!(head.says("a.b[].c", "x\\\"y") && head.says("e", "z"));
        assert!(!head.has("f.g") && !head.has("c") && !head.lines);
        assert_eq!(head.name.as_deref(), Some("name.json"));
    }

    #[test]
    fn lines_are_told_from_documents() {
        assert!(Head::new(b"{\"a\":1}\n{\"b\":2}", None).lines);
        assert!(Head::new(b"junk [\n{\"a\":1}\n", None).has("a"));
        assert!(!Head::new(b"{\"a\":1}", None).lines);
        assert!(!Head::new(b"[\n{\"a\":1}\n]", None).lines);
        assert!(!Head::new(b"{\n\"a\":{}\n}", None).lines);
    }

    #[test]
    fn deep_values_are_not_looked_into() {
        for deep in ["[".repeat(MAX_HEAD), "{\"a\":".repeat(MAX_HEAD / 5)] {
            let head = Head::new(deep.as_bytes(), None);
            assert!(head.keys.len() <= MAX_DEPTH.saturating_add(1), "{}", head.keys.len());
        }
    }

    #[test]
    fn nothing_and_the_unknown() {
        assert_eq!(Format::detect(b" \n", None), Err(DetectError::Empty));
        assert_eq!(Format::detect(b"{\"a\":1}", None), Err(DetectError::Unknown));
        assert_eq!(Format::detect(b"> hi", Some("w/.aider.chat.history.md")), Ok(Format::Aider));
        assert_eq!(Format::detect(b"{", Some("x.traj")), Ok(Format::SweAgent));
        assert_eq!(Format::detect(b"{", Some("x.traj.json")), Ok(Format::MiniSweAgent));
        assert_eq!(Format::detect(b"{", Some("rollout-1.jsonl")), Ok(Format::Codex));
        assert_eq!(Format::detect(b"{\"a\":1}", Some("x.jsonl")), Err(DetectError::Unknown));
    }
}
