//! Calls and their results, and which calls were made and succeeded before: what a guard before the tools would stop.

use std::{collections::HashMap, sync::Arc};

use keepspan::Signature;
use keepspan_sessions::Call;

use super::{
    outcome::{Repeated, Repeats},
    state::Act,
};
use crate::words;

/// Requests that are listed.
const LISTED: usize = 50;
/// Characters of the arguments that are shown.
const SHOWN: usize = 120;

/// The calls of one conversation.
#[derive(Debug, Default)]
pub struct Calls {
    /// Those without a result, in order.
    open: Vec<Made>,
    /// Those that have one since the model spoke last: results can come in parts.
    answered: Vec<Made>,
    done: HashMap<Signature, Done>,
    repeated: Vec<Repeated>,
}

#[derive(Debug)]
struct Made {
    id: Arc<str>,
    /// The entry that made it.
    entry: usize,
    /// Of a call that may change something.
    request: Option<Request>,
}

#[derive(Debug)]
struct Request {
    signature: Signature,
    line: u64,
    call: Call,
    /// Whether it is counted as repeated.
    counted: bool,
}

/// A request that succeeded.
#[derive(Debug)]
struct Done {
    line: u64,
    /// Its place in the list, once it was repeated.
    repeated: Option<usize>,
}

impl Calls {
    /// The model speaks: no further part of an earlier result follows.
    pub fn next_turn(&mut self) {
        self.answered.clear();
    }

    /// A call, with its signature where it may change something; whether it was made and succeeded before, and where.
    pub fn made(&mut self, entry: usize, line: u64, call: &Call, signature: Option<Signature>) -> Option<u64> {
        let request = |signature| Request { signature, line, call: call.clone(), counted: false };
        let mut request = signature.map(request);
        let before = request.as_mut().and_then(|request| self.repeats(request));
        self.open.push(Made { id: call.id.clone(), entry, request });
        before
    }

    /// A result of the nearest earlier call of this id that has none; the entry that made the call.
    pub fn answered(&mut self, id: &str, failed: bool) -> Option<usize> {
        let Some(at) = self.open.iter().rposition(|made| *made.id == *id) else {
            return self.answered.iter().rev().find(|made| *made.id == *id).map(|made| made.entry);
        };
        let mut made = self.open.remove(at);
        let entry = made.entry;
        if let Some(request) = &mut made.request {
            // Of several at once the first may have succeeded meanwhile.
            if self.repeats(request).is_none() && !failed {
                self.done.insert(request.signature, Done { line: request.line, repeated: None });
            }
        }
        self.answered.push(made);
        Some(entry)
    }

    /// Counts a request that succeeded before, once; where that was.
    fn repeats(&mut self, request: &mut Request) -> Option<u64> {
        let done = self.done.get_mut(&request.signature)?;
        if !std::mem::replace(&mut request.counted, true) {
            let at = *done.repeated.get_or_insert(self.repeated.len());
            match self.repeated.get_mut(at) {
                Some(known) => {
                    known.times = known.times.saturating_add(1);
                    known.lines.1 = request.line;
                }
                None => self.repeated.push(request.told(done.line)),
            }
        }
        Some(done.line)
    }

    /// What was repeated.
    pub fn finish(self) -> Repeats {
        let mut most = self.repeated;
        let sum = |act: Option<Act>| {
            let of = most.iter().filter(|repeated| act.is_none_or(|act| repeated.act == act));
            of.fold(0_u64, |sum, repeated| sum.saturating_add(repeated.times))
        };
        let (calls, writes) = (sum(None), sum(Some(Act::Write)));
        let requests = crate::report::story::number(most.len());
        most.sort_by_key(|repeated| (std::cmp::Reverse(repeated.times), repeated.first_line));
        most.truncate(LISTED);
        Repeats { calls, writes, requests, most }
    }
}

impl Request {
    fn told(&self, first_line: u64) -> Repeated {
        Repeated {
            tool: self.call.name.to_string(),
            act: Act::of(&self.call.name),
            arguments: words::begin(&self.call.arguments, SHOWN),
            signature: self.signature.to_string(),
            first_line,
            times: 1,
            lines: (self.line, self.line),
        }
    }
}
