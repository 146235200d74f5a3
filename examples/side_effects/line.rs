//! The line to the airline, which breaks: the process is killed before or after an effect, or an answer is lost.

use std::{collections::BTreeMap, path::Path};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::{
    calls::{Conversation, Write},
    requests::Request,
    service::Airline,
};

/// What happens to a call, the first time that it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// The process is killed after the effect, before it has the answer.
    KilledAfter,
    /// It took effect, and no answer comes.
    TimedOut,
    /// The process is killed before the request arrives.
    KilledBefore,
}

/// The faults of a conversation, by turn.
pub type Faults = BTreeMap<usize, Fault>;

/// Each write that the customer wants meets one of the three, in turn.
pub fn faults(wanted: impl IntoIterator<Item = usize>) -> Faults {
    wanted.into_iter().zip([Fault::KilledAfter, Fault::TimedOut, Fault::KilledBefore].into_iter().cycle()).collect()
}

/// What came back.
#[derive(Clone, Debug)]
pub enum Answer {
    Done(String),
    Rejected(String),
    TimedOut,
}

pub struct Line {
    pub airline: Airline,
    faults: Faults,
}

impl Line {
    pub fn open(path: &Path, conversation: &Conversation, faults: Faults) -> Result<Self> {
        Ok(Self { airline: Airline::open(path, conversation)?, faults })
    }

    /// Sends a request. `reference` is the caller's own name for it, by which it can ask later what became of it.
    pub fn send(&self, turn: usize, write: &Write, request: &Request, reference: Option<&str>) -> Result<Answer> {
        let fault = match self.faults.get(&turn) {
            Some(fault) if self.airline.strikes(turn)? => Some(fault),
            _ => None,
        };
        if fault == Some(&Fault::KilledBefore) {
            std::process::abort();
        }
        let answer = self.airline.write(turn, request, reference, write.made.as_deref())?;
        match fault {
            Some(Fault::KilledAfter) => std::process::abort(),
            Some(Fault::TimedOut) => Ok(Answer::TimedOut),
            _ => Ok(answer.map_or_else(Answer::Rejected, Answer::Done)),
        }
    }
}
