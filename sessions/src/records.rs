//! The input, one value at a time: lines of JSON, and documents walked from the outside in.
//!
//! Both find where a value ends before they parse it, so a value is parsed from one slice of the buffer and its strings are
//! borrowed. The buffer holds the value at hand: a line, or one element of a document.

use std::io::BufRead;

use memchr::{memchr, memchr_iter};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    detect::{Head, MAX_HEAD},
    error::Fault,
    report::RepairKind,
    session::Session,
    step::Place,
};

/// Bytes of a first record that are held to see whether another follows it.
const MAX_FIRST: usize = 4 << 20;

/// The input, and how far it was read.
pub(crate) struct Source<'r> {
    input: &'r mut dyn BufRead,
    buffer: Vec<u8>,
    /// Bytes of the buffer that are done with.
    at: usize,
    /// Of the byte at `at`.
    place: Place,
    ended: bool,
    /// Whether the last byte read ended a line.
    at_line_start: bool,
}

impl<'r> Source<'r> {
    pub(crate) fn new(input: &'r mut dyn BufRead) -> Self {
        Self {
            input,
            buffer: Vec::new(),
            at: 0,
            place: Place { line: 1, offset: 0 },
            ended: false,
            at_line_start: true,
        }
    }

    /// Passes a byte order mark, which is no part of the text.
    pub(crate) fn skip_mark(&mut self) -> Result<(), Fault> {
        const MARK: &[u8] = b"\xef\xbb\xbf";
        while self.rest().len() < MARK.len() && self.fill()? {}
        if self.rest().starts_with(MARK) {
            self.pass(MARK.len());
        }
        Ok(())
    }

    /// What was read and is not done with.
    fn rest(&self) -> &[u8] {
        self.buffer.get(self.at..).unwrap_or_default()
    }

    pub(crate) fn place(&self) -> Place {
        self.place
    }

    /// Lines done with, an unfinished last one included.
    pub(crate) fn lines(&self) -> u64 {
        self.place.line.saturating_sub(u64::from(self.at_line_start))
    }

    /// The beginning of what is left, which stays to be read.
    pub(crate) fn head(&mut self) -> Result<Head, Fault> {
        let mut first = Skim::default();
        let mut end = None;
        while end.is_none() && self.rest().len() < MAX_FIRST || self.rest().len() < MAX_HEAD {
            end = end.or_else(|| first.end(self.rest(), false));
            if !self.fill()? {
                break;
            }
        }
        let mut head = Head::new(self.rest(), None);
        let after = end.or_else(|| first.end(self.rest(), true)).and_then(|end| self.rest().get(end..));
        head.lines |=
            self.rest().starts_with(b"{") && after.is_some_and(|rest| rest.trim_ascii_start().starts_with(b"{"));
        Ok(head)
    }

    /// Reads more; `false` at the end of the input.
    fn fill(&mut self) -> Result<bool, Fault> {
        if self.ended {
            return Ok(false);
        }
        if self.at > 0 {
            self.buffer.drain(..self.at.min(self.buffer.len()));
            self.at = 0;
        }
        let chunk = loop {
            match self.input.fill_buf() {
                Ok(chunk) => break chunk,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Fault::Io(self.place.line, error)),
            }
        };
        let read = chunk.len();
        self.buffer.extend_from_slice(chunk);
        self.input.consume(read);
        self.ended = read == 0;
        Ok(!self.ended)
    }

    /// Is done with the next `count` bytes.
    fn pass(&mut self, count: usize) {
        let end = self.at.saturating_add(count).min(self.buffer.len());
        let passed = self.buffer.get(self.at..end).unwrap_or_default();
        if let Some(last) = passed.last() {
            self.at_line_start = *last == b'\n';
        }
        self.place.line = self.place.line.saturating_add(memchr_iter(b'\n', passed).count() as u64);
        self.place.offset = self.place.offset.saturating_add(passed.len() as u64);
        self.at = end;
    }

    /// The length of the line ahead with its line end; 0 at the end of the input.
    fn line_ahead(&mut self) -> Result<usize, Fault> {
        let mut seen = 0;
        loop {
            let new = self.rest().get(seen..).unwrap_or_default();
            if let Some(end) = memchr(b'\n', new) {
                return Ok(seen.saturating_add(end).saturating_add(1));
            }
            seen = self.rest().len();
            if !self.fill()? {
                return Ok(seen);
            }
        }
    }

    /// Every line, without its line end: for formats that are no JSON.
    pub(crate) fn each_text_line(
        &mut self,
        session: &mut Session<'_>,
        mut line: impl FnMut(&str, Place, &mut Session<'_>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        loop {
            let length = self.line_ahead()?;
            let Some(bytes) = self.rest().get(..length).filter(|bytes| !bytes.is_empty()) else { return Ok(()) };
            let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
            match std::str::from_utf8(bytes) {
                Ok(text) => line(text, self.place, session)?,
                Err(error) => session.repair(self.place.line, RepairKind::Junk { why: error.to_string() }),
            }
            self.pass(length);
        }
    }

    /// Every value of a file of JSON lines. What is no value is reported and skipped to the end of its line.
    pub(crate) fn each_record(
        &mut self,
        session: &mut Session<'_>,
        mut record: impl FnMut(Record<'_>, &mut Session<'_>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        loop {
            let length = self.line_ahead()?;
            let Some(line) = self.rest().get(..length).filter(|line| !line.is_empty()) else { return Ok(()) };
            let finished = line.ends_with(b"\n");
            self.each_of_line(line, finished, session, &mut record)?;
            if !finished {
                session.repair(self.place.line, RepairKind::NoFinalNewline);
            }
            self.pass(length);
        }
    }

    fn each_of_line(
        &self,
        line: &[u8],
        finished: bool,
        session: &mut Session<'_>,
        record: &mut impl FnMut(Record<'_>, &mut Session<'_>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let (mut rest, mut records) = (line, 0_u64);
        loop {
            rest = rest.trim_ascii_start();
            if rest.is_empty() {
                break;
            }
            let skipped = line.len().saturating_sub(rest.len()) as u64;
            let place = Place { offset: self.place.offset.saturating_add(skipped), ..self.place };
            let structured = rest.starts_with(b"{") || rest.starts_with(b"[");
            let Some(end) = Skim::default().end(rest, true).filter(|_| structured) else {
                let what = if finished || !structured {
                    RepairKind::Junk { why: "no object, or one that does not end on its line".into() }
                } else {
                    RepairKind::CutOff
                };
                session.repair(place.line, what);
                return Ok(());
            };
            let (value, after) = rest.split_at_checked(end).unwrap_or((rest, b""));
            match Record::of(value, place).and_then(|value| record(value, session)) {
                Err(Fault::Syntax { why, .. }) => {
                    session.repair(place.line, RepairKind::Junk { why });
                    return Ok(());
                }
                other => other?,
            }
            records = records.saturating_add(1);
            rest = after;
        }
        match records {
            0 => session.repair(self.place.line, RepairKind::Blank),
            1 => {}
            records => session.repair(self.place.line, RepairKind::SharedLine { records }),
        }
        Ok(())
    }
}

/// One JSON value of the file, not yet parsed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    pub(crate) text: &'a str,
    pub(crate) place: Place,
}

impl<'a> Record<'a> {
    fn of(bytes: &'a [u8], place: Place) -> Result<Self, Fault> {
        let text = std::str::from_utf8(bytes).map_err(|error| Fault::Syntax {
            line: place.line,
            offset: place.offset,
            why: error.to_string(),
        })?;
        Ok(Self { text, place })
    }

    /// The value as `T`, which is `what`. What is JSON and no `T` ends the reading.
    pub(crate) fn parse<T: Deserialize<'a>>(self, what: &str) -> Result<T, Fault> {
        parse(self.text, what, self.place)
    }

    /// The elements of a list; a value that is none is its own.
    pub(crate) fn elements(self) -> Result<Vec<Self>, Fault> {
        if !self.text.starts_with('[') {
            return Ok(vec![self]);
        }
        let elements: Vec<&'a RawValue> = self.parse("a list")?;
        Ok(elements.into_iter().map(|element| self.part(element)).collect())
    }

    /// A part of the record.
    pub(crate) fn part(self, part: &'a RawValue) -> Self {
        Self { text: part.get(), ..self }
    }

    /// Says that the record lacks something.
    pub(crate) fn lacks(self, what: impl Into<String>) -> Fault {
        lacks(self.place, what)
    }
}

/// A part of a record as `T`, which is `what`.
pub(crate) fn parse<'a, T: Deserialize<'a>>(text: &'a str, what: &str, place: Place) -> Result<T, Fault> {
    serde_json::from_str(text).map_err(|error| {
        let line = place.line.saturating_add((error.line() as u64).saturating_sub(1));
        let why = error.to_string();
        let why = why.rsplit_once(" at line ").map_or(why.as_str(), |(why, _)| why);
        if error.is_data() {
            Fault::Record { line, offset: place.offset, what: format!("{what}: {why}") }
        } else {
            Fault::Syntax { line, offset: place.offset, why: why.into() }
        }
    })
}

/// Says that the record at `place` lacks something.
pub(crate) fn lacks(place: Place, what: impl Into<String>) -> Fault {
    Fault::Record { line: place.line, offset: place.offset, what: what.into() }
}

/// A JSON document, walked from the outside in. Values that are skipped are not checked beyond their brackets and quotes.
pub(crate) struct Document<'d, 'r> {
    source: &'d mut Source<'r>,
    /// Bytes of the value given last, which are passed once the next is asked for.
    given: usize,
    /// Whether a value ended, so that only a comma or a closing bracket can follow.
    after_value: bool,
}

impl<'d, 'r> Document<'d, 'r> {
    pub(crate) fn new(source: &'d mut Source<'r>) -> Self {
        Self { source, given: 0, after_value: false }
    }

    /// Where the next value begins.
    pub(crate) fn place(&mut self) -> Result<Place, Fault> {
        self.peek()?;
        Ok(self.source.place())
    }

    /// Whether anything follows the last value: another document.
    pub(crate) fn more(&mut self) -> Result<bool, Fault> {
        Ok(self.ahead()?.is_some())
    }

    /// The first byte of the next value.
    pub(crate) fn peek(&mut self) -> Result<u8, Fault> {
        match self.ahead()? {
            Some(byte) => Ok(byte),
            None => Err(self.cut_off()),
        }
    }

    /// Whether the next value is an object.
    pub(crate) fn at_object(&mut self) -> Result<bool, Fault> {
        Ok(self.peek()? == b'{')
    }

    /// Whether the next value is an array.
    pub(crate) fn at_array(&mut self) -> Result<bool, Fault> {
        Ok(self.peek()? == b'[')
    }

    /// Goes into the object ahead, whose keys come next.
    pub(crate) fn object(&mut self) -> Result<(), Fault> {
        self.open(b'{', "an object")
    }

    /// Goes into the array ahead, whose elements come next.
    pub(crate) fn array(&mut self) -> Result<(), Fault> {
        self.open(b'[', "a list")
    }

    /// The next key of the object, whose value is ahead then; `None` once the object has ended.
    pub(crate) fn key(&mut self) -> Result<Option<String>, Fault> {
        if !self.follows(b'}')? {
            return Ok(None);
        }
        if self.peek()? != b'"' {
            return Err(self.syntax("a key is expected"));
        }
        let key = self.value()?.parse("a key")?;
        if self.peek()? != b':' {
            return Err(self.syntax("a colon is expected"));
        }
        self.source.pass(1);
        self.after_value = false;
        Ok(Some(key))
    }

    /// Whether the array has another element, which is ahead then.
    pub(crate) fn element(&mut self) -> Result<bool, Fault> {
        self.follows(b']')
    }

    /// The value ahead, whole.
    pub(crate) fn value(&mut self) -> Result<Record<'_>, Fault> {
        self.peek()?;
        let (mut skim, place) = (Skim::default(), self.source.place());
        let end = loop {
            if let Some(end) = skim.end(self.source.rest(), self.source.ended) {
                break end;
            }
            if !self.source.fill()? && self.source.ended && skim.end(self.source.rest(), true).is_none() {
                return Err(self.cut_off());
            }
        };
        if end == 0 {
            return Err(self.syntax("a value is expected"));
        }
        (self.given, self.after_value) = (end, true);
        Record::of(self.source.rest().get(..end).unwrap_or_default(), place)
    }

    /// Leaves the value ahead out, however large.
    pub(crate) fn skip(&mut self) -> Result<(), Fault> {
        self.peek()?;
        let mut skim = Skim::default();
        loop {
            if let Some(end) = skim.end(self.source.rest(), self.source.ended) {
                if end == 0 && skim.is_new() {
                    return Err(self.syntax("a value is expected"));
                }
                self.source.pass(end);
                self.after_value = true;
                return Ok(());
            }
            self.source.pass(skim.seen);
            skim.seen = 0;
            if !self.source.fill()? && skim.end(self.source.rest(), true).is_none() {
                return Err(self.cut_off());
            }
        }
    }

    /// Whether another key or element follows, past its comma; passes the closing bracket otherwise.
    fn follows(&mut self, closing: u8) -> Result<bool, Fault> {
        let next = self.peek()?;
        if next == closing {
            self.source.pass(1);
            self.after_value = true;
            return Ok(false);
        }
        if self.after_value {
            if next != b',' {
                return Err(self.syntax("a comma or a closing bracket is expected"));
            }
            self.source.pass(1);
            self.after_value = false;
            if self.peek()? == closing {
                return Err(self.syntax("a comma with nothing after it"));
            }
        }
        Ok(true)
    }

    fn open(&mut self, bracket: u8, what: &str) -> Result<(), Fault> {
        if self.peek()? != bracket {
            return Err(lacks(self.source.place(), format!("{what} is expected here")));
        }
        self.source.pass(1);
        self.after_value = false;
        Ok(())
    }

    /// The next byte that is no white space.
    fn ahead(&mut self) -> Result<Option<u8>, Fault> {
        self.source.pass(std::mem::take(&mut self.given));
        loop {
            let rest = self.source.rest();
            let blank = rest.len().saturating_sub(rest.trim_ascii_start().len());
            self.source.pass(blank);
            if let Some(byte) = self.source.rest().first() {
                return Ok(Some(*byte));
            }
            if !self.source.fill()? {
                return Ok(None);
            }
        }
    }

    fn cut_off(&self) -> Fault {
        Fault::CutOff(self.source.place().line)
    }

    fn syntax(&self, why: &str) -> Fault {
        let place = self.source.place();
        Fault::Syntax { line: place.line, offset: place.offset, why: why.into() }
    }
}

/// Finds the end of a JSON value by its brackets and quotes, over a buffer that may grow in between.
#[derive(Default)]
struct Skim {
    /// Bytes looked at.
    seen: usize,
    depth: usize,
    within: Within,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Within {
    #[default]
    Nothing,
    String,
    /// A number or a literal.
    Scalar,
    Brackets,
}

impl Skim {
    fn is_new(&self) -> bool {
        self.within == Within::Nothing
    }

    /// The end of the value that `bytes` begin with, if they hold it all; `last`: nothing follows them.
    fn end(&mut self, bytes: &[u8], last: bool) -> Option<usize> {
        while let Some(byte) = bytes.get(self.seen) {
            if self.within == Within::String {
                let rest = bytes.get(self.seen..).unwrap_or_default();
                let quote = memchr(b'"', rest);
                let text = rest.get(..quote.unwrap_or(rest.len())).unwrap_or_default();
                // Quotes are rarer than escapes, and an escaped one is told by what stands before it.
                let escapes = text.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1;
                self.seen = self.seen.saturating_add(text.len());
                if quote.is_none() {
                    // The escaped byte is not here yet.
                    self.seen = self.seen.saturating_sub(usize::from(escapes));
                    return None;
                }
                self.seen = self.seen.saturating_add(1);
                if !escapes {
                    self.within = Within::Brackets;
                    if self.depth == 0 {
                        return Some(self.seen);
                    }
                }
                continue;
            }
            match byte {
                b'"' if self.within == Within::Scalar => return Some(self.seen),
                b'"' => self.within = Within::String,
                b'{' | b'[' if self.within == Within::Scalar => return Some(self.seen),
                b'{' | b'[' => {
                    self.within = Within::Brackets;
                    self.depth = self.depth.saturating_add(1);
                }
                b'}' | b']' if self.depth > 0 => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        self.seen = self.seen.saturating_add(1);
                        return Some(self.seen);
                    }
                }
                b'}' | b']' | b',' | b':' | b' ' | b'\t' | b'\r' | b'\n' if self.depth == 0 => return Some(self.seen),
                _ if self.depth == 0 => self.within = Within::Scalar,
                _ => {}
            }
            self.seen = self.seen.saturating_add(1);
        }
        (last && self.within == Within::Scalar).then_some(self.seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(text: &str) -> Option<usize> {
        Skim::default().end(text.as_bytes(), true)
    }

    #[test]
    fn the_end_of_a_value() {
        for (text, end) in [
            ("{} x", Some(2)),
            ("[{\"a\":\"]}\\\"\"}]{", Some(14)),
            ("12,", Some(2)),
            ("null", Some(4)),
            ("\"a\\\\\"b", Some(5)),
            ("{\"a\":[1]", None),
            ("\"a\\\"", None),
            ("", None),
        ] {
            assert_eq!(ends(text), end, "{text}");
        }
    }

    #[test]
    fn a_value_in_pieces_ends_where_the_whole_does() {
        let text = "{\"a\\\"b\":[1,\"}\\\\\",{}],\"c\":null} ";
        let whole = ends(text);
        for cut in 0..text.len() {
            let (mut skim, bytes) = (Skim::default(), text.as_bytes());
            let first = skim.end(bytes.get(..cut).unwrap_or_default(), false);
            assert_eq!(first.or_else(|| skim.end(bytes, true)), whole, "{cut}");
        }
    }
}
