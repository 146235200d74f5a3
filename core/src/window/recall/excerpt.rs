//! A part of a text that is too large, or not wanted, as a whole: exact lines, as many as there is room for.

use std::fmt::Display;

use crate::{SpanId, TokenCounter, tool::Wanted};

/// How many lines are shown before and after a line that a search finds.
const AROUND: usize = 2;

/// The most bytes a token that a text has on average: a longer one is not counted, so that a small room in a large text is
/// cheap.
const LONGEST: u64 = 32;

/// What a reply says of a span before its text, in one line.
#[derive(Clone, Debug)]
pub(super) struct Title {
    pub(super) span: SpanId,
    pub(super) lane: &'static str,
    /// What else there is to say; empty, or begins with `; `.
    pub(super) note: String,
}

impl Title {
    pub(super) fn says(&self, what: impl Display) -> String {
        format!("[{} {}: {what}{}]", self.span, self.lane, self.note)
    }
}

/// A line that matches, by the lines before it, and where in the lowered line it does.
type Hit = (usize, usize);

/// A text to take lines from, and the room for them.
pub(super) struct Excerpt<'a> {
    pub(super) title: &'a Title,
    /// With their ends, so that what is shown is what was pushed, byte for byte.
    pub(super) lines: Vec<&'a str>,
    pub(super) room: u64,
    pub(super) counter: &'a dyn TokenCounter,
}

impl Excerpt<'_> {
    /// The reply; none where no part fits. O(text + room · log lines).
    pub(super) fn of(&self, wanted: &Wanted) -> Option<String> {
        match wanted {
            Wanted::Whole => self.lines_from(1, None),
            Wanted::Lines { from, to } => self.lines_from(*from, *to),
            Wanted::Search(words) => self.search(words),
        }
    }

    fn lines_from(&self, from: u64, to: Option<u64>) -> Option<String> {
        let skipped = usize::try_from(from.saturating_sub(1)).unwrap_or(usize::MAX);
        let asked = to.map_or(u64::MAX, |to| to.saturating_sub(from).saturating_add(1));
        let asked = usize::try_from(asked).unwrap_or(usize::MAX);
        let rest = self.lines.get(skipped..).unwrap_or_default();
        let Some(first) = rest.first() else {
            return Some(self.title.says(format_args!("there is no line {from}, the last is {}", self.lines.len())));
        };
        let asked = rest.get(..asked).unwrap_or(rest);
        match most(asked.len(), |shown| self.fits(&self.range(skipped, asked, shown))) {
            0 => self.cut(skipped, first, 0, next(skipped.saturating_add(1)).filter(|_| asked.len() > 1)),
            shown => Some(self.range(skipped, asked, shown)),
        }
    }

    /// The first `shown` of the `asked` lines, which begin after `skipped`.
    fn range(&self, skipped: usize, asked: &[&str], shown: usize) -> String {
        let last = skipped.saturating_add(shown);
        let left = if shown < asked.len() {
            let (next, end) = (last.saturating_add(1), skipped.saturating_add(asked.len()));
            format!("; {next} to {end} left out, ask from_line {next}")
        } else {
            String::new()
        };
        let title = self.title.says(format_args!("{} of {}{left}", numbers(skipped, last), self.lines.len()));
        format!("{title}\n{}", asked.iter().take(shown).copied().collect::<String>())
    }

    fn search(&self, words: &str) -> Option<String> {
        let words = lower(words);
        let all = self.lines.iter().enumerate();
        let hits: Vec<Hit> = all.filter_map(|(at, line)| Some((at, lower(line).find(&words)?))).collect();
        let Some(&(at, offset)) = hits.first() else {
            return Some(self.title.says(format_args!("lines that match: none of {}", self.lines.len())));
        };
        match most(hits.len(), |shown| self.fits(&self.hits(&hits, shown, AROUND))) {
            0 => {
                let alone = self.hits(&hits, 1, 0);
                let line = self.lines.get(at)?;
                if self.fits(&alone) {
                    Some(alone)
                } else {
                    self.cut(at, line, unlowered(line, offset), following(&hits, 1))
                }
            }
            shown => Some(self.hits(&hits, shown, AROUND)),
        }
    }

    /// The first `shown` lines that match, each with the lines around it; neighbours share theirs.
    fn hits(&self, hits: &[Hit], shown: usize, around: usize) -> String {
        let mut blocks: Vec<(usize, usize)> = Vec::new();
        for (at, _) in hits.iter().take(shown) {
            let (start, end) = (at.saturating_sub(around), at.saturating_add(around).saturating_add(1));
            let end = end.min(self.lines.len());
            match blocks.last_mut() {
                Some((_, last)) if *last >= start => *last = end,
                _ => blocks.push((start, end)),
            }
        }
        let left =
            following(hits, shown).map_or_else(String::new, |next| format!(", of which the first {shown}{next}"));
        let mut text = self.title.says(format_args!("lines that match: {} of {}{left}", hits.len(), self.lines.len()));
        text.push('\n');
        for (start, end) in blocks {
            text.push_str(&format!("[{}]\n", numbers(start, end)));
            text.extend(self.lines.get(start..end).unwrap_or_default().iter().copied());
        }
        text
    }

    /// A piece of the line after `skipped` others, from byte `start` on, where the line is larger than the room.
    fn cut(&self, skipped: usize, line: &str, start: usize, next: Option<String>) -> Option<String> {
        let number = skipped.saturating_add(1);
        let next = next.unwrap_or_default();
        let rest = line.get(start..)?;
        let piece = |characters| {
            let end = rest.char_indices().nth(characters).map_or(rest.len(), |(end, _)| end);
            let piece = rest.get(..end).unwrap_or_default();
            let (first, last) = (start.saturating_add(1), start.saturating_add(end));
            let (bytes, all) = (line.len(), self.lines.len());
            let what = format_args!(
                "bytes {first} to {last} of {bytes} of line {number} of {all}, which does not fit whole{next}"
            );
            format!("{}\n{piece}", self.title.says(what))
        };
        match most(rest.chars().count(), |characters| self.fits(&piece(characters))) {
            0 => None,
            characters => Some(piece(characters)),
        }
    }

    fn fits(&self, text: &str) -> bool {
        let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
        // No token is less than a byte, so what cannot be counted is never counted too low.
        let tokens = || self.counter.text(text).map_or(bytes, |count| u64::from(count.tokens()));
        bytes <= self.room.saturating_mul(LONGEST) && tokens() <= self.room
    }
}

/// The most of `1..=all` that fit, where more take more; 0 when not even one does. All of them need no word on what is
/// left out, so they can fit where one less does not.
fn most(all: usize, fits: impl Fn(usize) -> bool) -> usize {
    if fits(all) {
        return all;
    }
    let (mut fitting, mut next) = (0_usize, 1_usize);
    while next < all && fits(next) {
        (fitting, next) = (next, next.saturating_mul(2));
    }
    let mut too_many = next.min(all);
    while too_many.saturating_sub(fitting) > 1 {
        let middle = fitting.midpoint(too_many);
        if fits(middle) { fitting = middle } else { too_many = middle }
    }
    fitting
}

/// The lines after the first `start` of them, up to number `end`.
fn numbers(start: usize, end: usize) -> String {
    match start.saturating_add(1) {
        first if first == end => format!("line {end}"),
        first => format!("lines {first} to {end}"),
    }
}

/// How to ask for the line after `skipped` others.
fn next(skipped: usize) -> Option<String> {
    let line = skipped.saturating_add(1);
    Some(format!("; the next is line {line}, ask from_line {line}"))
}

/// How to ask for the lines that match after the first `shown` of them.
fn following(hits: &[Hit], shown: usize) -> Option<String> {
    hits.get(shown).and_then(|(at, _)| next(*at))
}

/// In lower case, character by character: what stands around one never changes it.
fn lower(text: &str) -> String {
    if text.is_ascii() { text.to_ascii_lowercase() } else { text.chars().flat_map(char::to_lowercase).collect() }
}

/// Where in `line` the character begins that is at byte `offset` of the lowered line.
fn unlowered(line: &str, offset: usize) -> usize {
    let mut lowered = 0_usize;
    let width = |c: char| c.to_lowercase().map(char::len_utf8).fold(0, usize::saturating_add);
    let found = line.char_indices().find(|(_, c)| {
        lowered = lowered.saturating_add(width(*c));
        lowered > offset
    });
    found.map_or(line.len(), |(at, _)| at)
}
