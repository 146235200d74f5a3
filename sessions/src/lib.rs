//! Recorded sessions of LLM agents, read as a stream of steps that can be pushed into a keepspan window.
//!
//! [`read`] takes the file of any [`Format`] and gives [`Step`]s, in the order of the file: a conversation begins, a span
//! enters, the agent pruned itself. It holds one record at a time: a line, or one element of a document's lists. What the wild
//! does to files is tolerated and [reported](Report) by line; what would change the meaning of a session is an
//! [error](ReadError).
//!
//! Of what a file has twice, one copy is read; what the model never saw is left out, and counted. A result is paired with the
//! nearest earlier call of its id that has none, since files use ids again; where calls stand in prose, with the call before
//! it, under an id that the reader mints. Text is taken byte for byte, line ends included. Pictures are bytes with a size, and
//! never text.
//!
//! ```
//! use keepspan_sessions::{Format, Step, read};
//!
//! let file = br#"{"type":"session","id":"s1","cwd":"/w"}
//! {"type":"message","message":{"role":"user","content":[{"type":"text","text":"Read a.txt"}]}}
//! {"type":"message","message":{"role":"assistant","content":[{"type":"toolCall","id":"1","name":"read","arguments":{"path":"a.txt"}}]}}
//! {"type":"message","message":{"role":"toolResult","toolCallId":"1","toolName":"read","content":[{"type":"text","text":"hi"}]}}
//! "#;
//! let format = Format::detect(file, Some("session.jsonl"))?;
//! assert_eq!(format, Format::Pi);
//!
//! let mut spans = Vec::new();
//! let report = read(&file[..], format, |step| {
//!     if let Step::Entry(entry) = step {
//!         spans.push(entry.span); // window.push(entry.span)?;
//!     }
//!     Ok::<_, std::convert::Infallible>(())
//! })?;
//! assert_eq!((report.entries, report.calls, report.results), (3, 1, 1));
//! assert!(report.repaired.is_empty());
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

mod detect;
mod error;
mod format;
mod formats;
mod pairing;
mod picture;
mod records;
mod report;
mod session;
mod step;

use std::io::BufRead;

use self::{error::Fault, records::Source, session::Session};

pub use self::{
    error::{DetectError, ReadError},
    format::{Format, UnknownFormat},
    report::{MAX_LISTED, Repair, RepairKind, Report},
    step::{Call, Compaction, CompactionKind, Conversation, Entry, EntryKind, Place, Step},
};

/// Reads a file of sessions and gives `step` each of its steps. Memory is that of the largest record, the ids of one
/// conversation's calls, and some bytes a record where a format names records or repeats them.
///
/// # Errors
/// The input fails, the file is not of the format or damaged where that cannot be skipped, or `step` refuses. Steps given
/// before stand.
pub fn read<R: BufRead, E>(
    mut input: R,
    format: Format,
    mut step: impl FnMut(Step) -> Result<(), E>,
) -> Result<Report, ReadError<E>> {
    let mut refused = None;
    let mut give = |given: Step| match step(given) {
        Ok(()) => true,
        Err(error) => {
            refused = Some(error);
            false
        }
    };
    let read = run(&mut input, format, &mut give);
    match (read, refused) {
        (_, Some(error)) => Err(ReadError::Step(error)),
        (Ok(report), None) if report.conversations == 0 => Err(ReadError::Nothing { format, lines: report.lines }),
        (Ok(report), None) => Ok(report),
        (Err(Fault::Io(line, source)), None) => Err(ReadError::Io { line, source }),
        (Err(Fault::Syntax { line, offset, why }), None) => Err(ReadError::Syntax { line, offset, why }),
        (Err(Fault::CutOff(line)), None) => Err(ReadError::CutOff { line }),
        (Err(Fault::Record { line, offset, what }), None) => Err(ReadError::Record { line, offset, what }),
        // Only a refusal stops so, and then there is its error.
        (Err(Fault::Refused), None) => Err(ReadError::Nothing { format, lines: 0 }),
    }
}

fn run(input: &mut dyn BufRead, format: Format, step: &mut dyn FnMut(Step) -> bool) -> Result<Report, Fault> {
    let mut source = Source::new(input);
    source.skip_mark()?;
    let mut session = Session::new(step);
    formats::read(format)(&mut source, &mut session)?;
    let mut report = session.finish();
    report.bytes = source.place().offset;
    report.lines = source.lines();
    Ok(report)
}
