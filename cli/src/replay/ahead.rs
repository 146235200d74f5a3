//! Reads ahead of the window, which is in a thread of its own: parses the file, and tells of each entry what needs no window.

use std::{collections::VecDeque, io::BufRead, ops::Range, sync::mpsc, thread};

use keepspan_sessions::{Compaction, Conversation, Entry, Format, ReadError, Report, Step};

use super::{late::hashes, mentions::hash, run::Settings};
use crate::failure::Failure;

/// Bytes of text that the window is given at once.
const BYTES: usize = 256 << 10;
/// Steps that it is given at once, however little they say.
const STEPS: usize = 1_024;
/// How often the reader may be ahead by so much: memory is that of these, of as many that are done with, and of the largest
/// record.
const BATCHES: usize = 4;

/// A step, with what needs no window.
pub enum Ready {
    Begins(Conversation),
    Entry(Told),
    Compacted(Compaction),
}

/// An entry, and what is told of it.
pub struct Told {
    pub entry: Entry,
    /// Of its text; none of a picture.
    pub hash: Option<u64>,
    /// Where among the hashes of all mentions are those of its text.
    pub mentions: Range<usize>,
}

/// The steps that the window is given at once, and gives back: a thread that frees what another allocated keeps that one
/// waiting.
#[derive(Default)]
struct Batch {
    steps: Vec<Ready>,
    /// Of all mentions.
    hashes: Vec<u64>,
}

/// Nothing is taken any more: why, the other side says.
#[derive(Debug, thiserror::Error)]
#[error("the replay stopped")]
pub struct Stopped;

/// Reads a file and gives `take` its steps, in order, with the hashes of all mentions; those of the conversations that are
/// replayed.
///
/// # Errors
/// What `take` refused, or that there is no thread. Within, why the file could not be read: `take` had all that stood before.
pub fn read(
    input: impl BufRead,
    format: Format,
    settings: &Settings,
    mut take: impl FnMut(&Ready, &[u64]) -> Result<(), Failure> + Send,
) -> Result<Result<Report, ReadError<Stopped>>, Failure> {
    let (sender, receiver) = mpsc::sync_channel::<Batch>(BATCHES);
    let (done, spent) = mpsc::channel();
    let all = move |batch: Batch| {
        batch.steps.iter().try_for_each(|step| take(step, &batch.hashes))?;
        // A reader that is through with the file takes none back.
        let _ = done.send(batch);
        Ok(())
    };
    thread::scope(|scope| {
        // A refusal drops the receiver, which stops the reader.
        let taker = thread::Builder::new()
            .spawn_scoped(scope, move || receiver.into_iter().try_for_each(all))
            .map_err(|error| Failure::Replay(format!("there is no thread for the window: {error}")))?;
        // The texts are of the thread that reads: the system's allocator gives the first one's back at the least cost.
        let report = ahead(input, format, settings, sender, &spent);
        let taken = taker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        taken.map(|()| report)
    })
}

/// The reader's side.
fn ahead(
    input: impl BufRead,
    format: Format,
    settings: &Settings,
    sender: mpsc::SyncSender<Batch>,
    spent: &mpsc::Receiver<Batch>,
) -> Result<Report, ReadError<Stopped>> {
    let (mut batch, mut bytes, mut wanted) = (Batch::default(), 0_usize, false);
    // Of what is done with, the window has the newest texts yet.
    let mut held = VecDeque::with_capacity(BATCHES);
    let report = keepspan_sessions::read(input, format, |step| {
        match step {
            Step::Begins(begun) => {
                wanted = settings.replays(&begun);
                batch.steps.push(Ready::Begins(begun));
            }
            Step::Entry(entry) if wanted => {
                bytes = bytes.saturating_add(entry.text.len());
                batch.steps.push(Ready::Entry(told(entry, &mut batch.hashes)));
            }
            Step::Compacted(compaction) if wanted => batch.steps.push(Ready::Compacted(compaction)),
            _ => {}
        }
        if bytes < BYTES && batch.steps.len() < STEPS {
            return Ok(());
        }
        bytes = 0;
        for done in spent.try_iter() {
            held.push_back(done);
            if held.len() > BATCHES {
                held.pop_front();
            }
        }
        sender.send(std::mem::take(&mut batch)).map_err(|_| Stopped)
    });
    // What stands before an error is taken all the same.
    match (sender.send(batch), report) {
        (Err(_), Ok(_)) => Err(ReadError::Step(Stopped)),
        (_, report) => report,
    }
}

fn told(entry: Entry, all: &mut Vec<u64>) -> Told {
    let hash = (!entry.text.is_empty()).then(|| hash(&*entry.text));
    Told { hash, mentions: hashes(&entry.text, all), entry }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use keepspan::{Budget, ByteEstimate, Limits};

    use super::*;
    use crate::args::Policy;

    fn settings() -> Result<Settings, Box<dyn std::error::Error>> {
        let limits = Limits::of(32_000);
        Ok(Settings {
            limits,
            budget: Budget::new(limits)?,
            counter: Arc::new(ByteEstimate),
            policy: Policy::Oldest,
            script: Vec::new(),
            only: None,
        })
    }

    /// More lines than the reader is ahead by.
    fn lines() -> String {
        let lines = STEPS * (BATCHES + 3);
        (0..lines)
            .map(|at| format!("{{\"type\":\"message\",\"message\":{{\"role\":\"user\",\"content\":\"text {at}\"}}}}\n"))
            .collect()
    }

    #[test]
    fn steps_come_in_order_and_before_the_error_behind_them() -> Result<(), Box<dyn std::error::Error>> {
        let file = format!("{}{{\"type\":\"message\"}}\n", lines());
        let mut texts = Vec::new();
        let read = read(file.as_bytes(), Format::Pi, &settings()?, |step, _| {
            if let Ready::Entry(told) = step {
                texts.push(told.entry.text.to_string());
            }
            Ok(())
        })?;
        assert!(matches!(read, Err(ReadError::Record { .. })), "{read:?}");
        let expected: Vec<_> = (0..lines().lines().count()).map(|at| format!("text {at}")).collect();
        assert_eq!(texts, expected);
        Ok(())
    }

    #[test]
    fn a_refusal_stops_the_reader_and_is_what_is_told() -> Result<(), Box<dyn std::error::Error>> {
        let (file, mut taken) = (lines(), 0);
        let refused = read(file.as_bytes(), Format::Pi, &settings()?, |_, _| {
            taken += 1;
            if taken == 3 { Err(Failure::Replay("no".to_owned())) } else { Ok(()) }
        });
        assert!(matches!(refused, Err(Failure::Replay(why)) if why == "no"));
        assert_eq!(taken, 3);
        Ok(())
    }
}
