//! What a text mentions that a later call can depend on: identifiers, ids and paths.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

/// Bytes of a mention: shorter words say too little, longer ones are no names.
const LENGTHS: std::ops::RangeInclusive<usize> = 6..=200;

/// Calls `found` with each mention, in order, as often as it is there. O(length), no allocation.
///
/// An identifier is a word of letters, digits and `_` that begins with no digit and has a capital, a digit or a `_` after its
/// first letter. An id or a path is a run of such words joined by `/`, `.`, `-`, `@` that has a `/` or a digit, or a
/// number in quotes.
pub fn mentions<'t>(text: &'t str, mut found: impl FnMut(&'t str)) {
    let bytes = text.as_bytes();
    let mut at = 0_usize;
    while let Some((start, stop, mut classes)) = stop(bytes, at) {
        if bytes.get(stop) == Some(&b'\\') {
            at = stop.saturating_add(escape(bytes.get(stop.saturating_add(1)).copied()));
            continue;
        }
        at = stop;
        for class in bytes.get(stop..).unwrap_or_default().iter().map(|byte| class(*byte)) {
            if class & IN_RUN == 0 {
                break;
            }
            classes |= class;
            at = at.saturating_add(1);
        }
        if at.saturating_sub(start) >= *LENGTHS.start() {
            in_run(text, start, at, classes, &mut found);
        }
    }
}

/// The next byte from `at` on that makes a name of its run, or is a `\`: where its run begins, where it is, and the classes
/// between. Most words have none, so they are passed without a branch that depends on where they end.
fn stop(bytes: &[u8], at: usize) -> Option<(usize, usize, u8)> {
    let (mut start, mut classes) = (at, 0);
    for (byte, here) in bytes.get(at..)?.iter().zip(at..) {
        let class = class(*byte);
        if class & (NAMING | BACKSLASH) != 0 {
            return Some((start, here, classes));
        }
        let apart = class == 0;
        start = if apart { here.wrapping_add(1) } else { start };
        classes = if apart { 0 } else { classes | class };
    }
    None
}

const LOWER: u8 = 1;
const MARK: u8 = 2;
const SLASH: u8 = 4;
const JOINT: u8 = 8;
const BACKSLASH: u8 = 16;
const IN_RUN: u8 = LOWER | MARK | SLASH | JOINT;
const NAMING: u8 = MARK | SLASH;
const JOINTS: u8 = SLASH | JOINT;

fn class(byte: u8) -> u8 {
    CLASSES.get(usize::from(byte)).copied().unwrap_or_default()
}

const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let (mut rest, mut byte) = (classes.as_mut_slice(), 0_u8);
    while let [first, others @ ..] = rest {
        *first = match byte {
            b'a'..=b'z' => LOWER,
            b'A'..=b'Z' | b'0'..=b'9' | b'_' => MARK,
            b'/' => SLASH,
            b'.' | b'-' | b'@' => JOINT,
            b'\\' => BACKSLASH,
            _ => 0,
        };
        (rest, byte) = (others, byte.wrapping_add(1));
    }
    classes
};

/// How many bytes a `\` and what it escapes take: texts hold JSON, in which `\nname` is no `nname`.
fn escape(next: Option<u8>) -> usize {
    match next {
        Some(b'n' | b't' | b'r' | b'b' | b'f' | b'"' | b'\\') => 2,
        Some(b'u') => 6,
        _ => 1,
    }
}

fn in_run<'t>(text: &'t str, start: usize, end: usize, classes: u8, found: &mut impl FnMut(&'t str)) {
    let run = text.get(start..end).unwrap_or_default();
    if classes & JOINTS == 0 {
        return word(run, text, (start, end), found);
    }
    let joint = |char: char| matches!(char, '/' | '.' | '-' | '@');
    let run = run.strip_prefix("./").unwrap_or(run).trim_start_matches(['.', '-', '@']).trim_end_matches(joint);
    if !run.bytes().any(|byte| class(byte) & JOINTS != 0) {
        return word(run, text, (start, end), found);
    }
    if LENGTHS.contains(&run.len()) && run.bytes().any(|byte| byte == b'/' || byte.is_ascii_digit()) {
        found(run);
    }
    let mut at = 0_usize;
    for word in run.as_bytes().split(|byte| class(*byte) & JOINTS != 0) {
        let end = at.saturating_add(word.len());
        if is_identifier(word) {
            found(run.get(at..end).unwrap_or_default());
        }
        at = end.saturating_add(1);
    }
}

/// A run without joints.
fn word<'t>(word: &'t str, text: &str, (start, end): (usize, usize), found: &mut impl FnMut(&'t str)) {
    let bytes = text.as_bytes();
    let quoted = || [start.checked_sub(1), Some(end)].into_iter().all(|at| is_quote(at.and_then(|at| bytes.get(at))));
    let is_number = || word.bytes().all(|byte| byte.is_ascii_digit());
    if is_identifier(word.as_bytes()) || LENGTHS.contains(&word.len()) && is_number() && quoted() {
        found(word);
    }
}

/// A text of its own is quoted too; within JSON in JSON a number stands between `"` and `\`.
fn is_quote(byte: Option<&u8>) -> bool {
    matches!(byte, None | Some(b'"' | b'\'' | b'`' | b'\\'))
}

fn is_identifier(word: &[u8]) -> bool {
    let mut bytes = word.iter();
    LENGTHS.contains(&word.len())
        && bytes.next().is_some_and(|first| !first.is_ascii_digit())
        && bytes.any(|byte| !byte.is_ascii_lowercase())
}

/// 64 bits, by multiplying eight bytes at a time: an episode has far fewer mentions than would make two of them meet. Not
/// against whoever wants two to meet. O(length), about 4 GB a second.
pub fn hash(text: impl AsRef<[u8]>) -> u64 {
    let bytes = text.as_ref();
    let (blocks, rest) = bytes.as_chunks();
    let rest = rest.iter().fold(0, |rest, byte| rest << 8 | u64::from(*byte));
    let blocks = blocks.iter().map(|block| u64::from_le_bytes(*block)).chain([rest]);
    blocks.fold(mix(bytes.len() as u64 ^ ODD), |hash, block| mix(hash ^ block))
}

const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Both halves of a product as one.
fn mix(hash: u64) -> u64 {
    let product = u128::from(hash).wrapping_mul(u128::from(ODD));
    product as u64 ^ (product >> 64) as u64
}

/// A map from hashes, which are spread already.
pub type ByHash<T> = HashMap<u64, T, BuildHasherDefault<Spread>>;

/// Gives a hash as it is.
#[derive(Debug, Default)]
pub struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = self.0.rotate_left(5) ^ hash;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<&str> {
        let mut all = Vec::new();
        mentions(text, |found| all.push(found));
        all
    }

    #[test]
    fn names_ids_and_paths_are_mentioned_and_words_are_not() {
        assert_eq!(
            all("export const ColorValueSchema = z.union(lower_case, short_, Capital, letters)"),
            ["ColorValueSchema", "lower_case", "short_"]
        );
        assert_eq!(all("see ./src/theme.ts, /a/b.rs. v1.22.3, e.g. that"), ["src/theme.ts", "/a/b.rs", "v1.22.3"]);
        assert_eq!((all("4602305039"), all("in 4602305039")), (vec!["4602305039"], vec![]));
        assert_eq!(
            all(r#"{"reservation": "HATHAT", "item": "4602305039", "n": 4602305039}"#),
            ["HATHAT", "4602305039"]
        );
        assert_eq!(all(r"a\nnewText\u001bset_it C:\Users"), ["newText", "set_it"]);
        assert_eq!(all("über, größe_2, 12345, a/b, short"), [""; 0]);
    }

    #[test]
    fn equal_mentions_have_equal_hashes() {
        assert_eq!(hash("getFgAnsi"), hash("getFgAnsi"));
        let others = ["getBgAnsi", "getFgAnsi\0", "getFgAns", "hetFgAnsi", "getFgAnsj", ""];
        let hashes: std::collections::HashSet<_> = others.iter().chain(&["getFgAnsi"]).map(hash).collect();
        assert_eq!(hashes.len(), 7);
    }
}
