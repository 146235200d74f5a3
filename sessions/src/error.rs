//! Why a file could not be read.

use std::{convert::Infallible, io};

use crate::Format;

/// Why reading stopped. Steps given before it stand.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError<E = Infallible> {
    /// The input failed.
    #[error("the input failed at line {line}: {source}; read it again")]
    Io {
        /// The line, from 1.
        line: u64,
        /// What it said.
        source: io::Error,
    },
    /// A document is no JSON from here on.
    #[error("line {line}, byte {offset}: not JSON: {why}; a document is read whole or not at all, so mend the file")]
    Syntax {
        /// The line, from 1.
        line: u64,
        /// The number of bytes before the value that is broken.
        offset: u64,
        /// What is wrong.
        why: String,
    },
    /// A document ends inside a value.
    #[error("line {line}: the file ends here, inside a value: it was cut off; copy it again")]
    CutOff {
        /// The line, from 1.
        line: u64,
    },
    /// A record of a known kind lacks what it must have, so leaving it out would change what the session says.
    #[error("line {line}, byte {offset}: {what}; mend the record, or name another format")]
    Record {
        /// The line, from 1.
        line: u64,
        /// The number of bytes before the record.
        offset: u64,
        /// Which record, and what it lacks.
        what: String,
    },
    /// The file has nothing of the format.
    #[error("no record of the format `{format}` in {lines} lines: is it the right file, and the right format?")]
    Nothing {
        /// The format.
        format: Format,
        /// The lines read.
        lines: u64,
    },
    /// The closure that takes the steps refused one.
    #[error("{0}")]
    Step(E),
}

/// Why the format of a file could not be told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DetectError {
    /// The file is empty.
    #[error("the file is empty: nothing can be told of it")]
    Empty,
    /// It looks like none of the formats.
    #[error("it looks like none of the formats: name one of {}", Format::names())]
    Unknown,
}

/// Why the inside of the reader stops.
#[derive(Debug)]
pub(crate) enum Fault {
    Io(u64, io::Error),
    Syntax {
        line: u64,
        offset: u64,
        why: String,
    },
    CutOff(u64),
    Record {
        line: u64,
        offset: u64,
        what: String,
    },
    /// The closure refused; its error waits outside.
    Refused,
}
