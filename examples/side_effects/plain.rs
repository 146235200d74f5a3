//! Without keepspan: a list of messages, the oldest dropped when it is too long. The list is saved after every turn, so a
//! kill loses only the answer of the call that is under way; that call is sent again.

use anyhow::Result;

use crate::{
    calls::{Turn, Write},
    job::{Agent, BUDGET, Progress, wanted_again},
    line::{Answer, Line},
};

/// An agent with a list of messages.
pub struct Plain {
    /// Whether it looks there for the call that it is about to make, and does not make one that succeeded.
    pub remembers: bool,
}

impl Agent for Plain {
    /// Rules and the customer's words never leave, as with keepspan.
    fn takes(&mut self, turn: &Turn, progress: &mut Progress) -> Result<()> {
        if let Turn::Agent(text) | Turn::Read { text, .. } = turn {
            keep(progress, String::new(), text.len());
        }
        Ok(())
    }

    fn calls(&mut self, at: usize, write: &Write, line: &Line, progress: &mut Progress) -> Result<()> {
        let call = write.request.signature().to_string();
        let size = write.request.tool.len().saturating_add(write.request.arguments.to_string().len());
        let done = self.remembers && progress.list.iter().any(|(done, _)| *done == call);
        if done && wanted_again(at, write, line)?.is_none() {
            progress.tally.given_back = progress.tally.given_back.saturating_add(1);
            keep(progress, call, size);
            return Ok(());
        }
        let mut answer = line.send(at, write, &write.request, None)?;
        if matches!(answer, Answer::TimedOut) {
            progress.tally.unanswered = progress.tally.unanswered.saturating_add(1);
            answer = line.send(at, write, &write.request, None)?;
        }
        match answer {
            Answer::Done(text) => keep(progress, call, size.saturating_add(text.len())),
            Answer::Rejected(text) => keep(progress, String::new(), size.saturating_add(text.len())),
            Answer::TimedOut => {}
        }
        Ok(())
    }
}

/// Appends a message of so many bytes; `done` is the call that it says was done, or nothing.
fn keep(progress: &mut Progress, done: String, bytes: usize) {
    progress.list.push((done, u64::try_from(bytes.div_ceil(4)).unwrap_or(u64::MAX)));
    let tokens = |list: &[(String, u64)]| list.iter().map(|(_, tokens)| *tokens).fold(0, u64::saturating_add);
    while tokens(&progress.list) > BUDGET && !progress.list.is_empty() {
        progress.list.remove(0);
        progress.tally.left = progress.tally.left.saturating_add(1);
    }
}
