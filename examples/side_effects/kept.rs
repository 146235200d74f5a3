//! With keepspan: the same calls on permits. What was done, what failed and what is uncertain is found in the store, by the
//! request's signature, whatever has left the window and whichever process did it.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use anyhow::{Result, anyhow, bail};
use keepspan::{
    Action, Digest, Episode, EpisodeId, Failure, Granted, NewSpan, Override, Permission, Signature, Window,
    action::{Attempt, RunError, Settlement, Withheld},
    audit::{Happening, History},
    evidence::{Evidence, Raw},
    rule::{Grounded, Justifies, RunsOn, RunsWith, Unconsented},
    store::Store,
};
use serde::Serialize;

use crate::{
    calls::{Turn, Write},
    job::{Agent, BUDGET, Progress, Tally, wanted_again},
    line::{Answer, Line},
    place::Place,
    requests::{Desk, Request, typed},
};

/// An agent whose memory is a window over a store.
pub struct Kept {
    window: Window<Desk, Arc<dyn Store>>,
}

/// The episode of every conversation, each in a store of its own.
const EPISODE: &str = "desk";

/// What the agent reads as the result of its call.
enum Reply {
    Done(String),
    Failed(String),
}

impl Kept {
    /// Opens the window, or goes on with the one that a killed process left.
    pub fn open(path: &Path, place: &Place) -> Result<Self> {
        let (store, episode) = (place.open(path)?, Episode::new(EPISODE, "oldest-first"));
        let window = if store.length(&EpisodeId::new(EPISODE))? > 0 {
            Window::resume(store, episode)?
        } else {
            Window::open(store, episode)?
        };
        Ok(Self { window })
    }

    /// Oldest first, and only as much as needed, records too: a permit brings back what it needs of them.
    fn make_room(&mut self, tally: &mut Tally) -> Result<()> {
        let most = self.fixed().saturating_add(BUDGET);
        if self.window.utilization() <= most {
            return Ok(());
        }
        let lanes = self.window.lanes().externalize().wait()?;
        while lanes.utilization() > most {
            let left = match (lanes.work.resident().first(), lanes.records.resident().first()) {
                (Some(work), record) if record.is_none_or(|record| work < record) => lanes.work.evict(*work).wait()?,
                (_, Some(record)) => lanes.records.evict(*record).wait()?,
                (_, None) => break,
            };
            tally.left = tally.left.saturating_add(u64::try_from(left.len())?);
        }
        Ok(())
    }

    /// The tokens of what never leaves.
    fn fixed(&mut self) -> u64 {
        let lanes = self.window.lanes();
        let tokens = |span| lanes.asked.tokens(span).map_or(0, |count| u64::from(count.tokens()));
        lanes.asked.resident().into_iter().map(tokens).fold(0, u64::saturating_add)
    }

    /// The customer's last words, on which every write rests.
    fn wish(&mut self) -> Result<Evidence<Raw>> {
        let lanes = self.window.lanes();
        let wish = lanes.asked.resident().into_iter().rev().find_map(|span| lanes.asked.cite(span).ok());
        wish.ok_or_else(|| anyhow!("a write call before the customer said anything"))
    }

    /// Gets a permit and runs the action on it, or says why not.
    fn attempt<A>(&mut self, at: usize, write: &Write, action: &A, line: &Line, tally: &mut Tally) -> Result<Reply>
    where
        A: Action<State = Desk> + Serialize,
        Raw: Justifies<A, A::Effect>,
        Grounded: RunsOn<A, A::Effect>,
        Unconsented: RunsWith<A, A::Consent>,
    {
        let wish = self.wish()?;
        loop {
            let permission = match self.window.permit(action)? {
                Permission::Fresh(permit) => Ok(permit),
                Permission::Denied(denied) => Err(denied),
                Permission::Failed(failed) => {
                    tally.refused = tally.refused.saturating_add(1);
                    return Ok(Reply::Failed(format!("not sent: {failed}")));
                }
                Permission::Done(done) => {
                    let why = wanted_again(at, write, line)?;
                    // The repeat that is wanted may be the one that was done: by a process that stopped just after.
                    let Some(why) = why.filter(|why| done.attempt().repeats() != Some(why)) else {
                        tally.given_back = tally.given_back.saturating_add(1);
                        return Ok(Reply::Done(done.text().unwrap_or_default().to_owned()));
                    };
                    done.repeat(Override::because(why)?)
                }
                Permission::Uncertain(attempt) => match settle(attempt, line)? {
                    Some(answer) => return Ok(Reply::Done(answer)),
                    None => continue,
                },
            };
            let permit = match permission {
                Ok(permit) => permit,
                Err(denied) if !denied.evicted().is_empty() => {
                    denied.bring_back().wait()?;
                    continue;
                }
                Err(denied) => {
                    tally.denied = tally.denied.saturating_add(1);
                    return Ok(Reply::Failed(format!("not sent: {denied}")));
                }
            };
            let reference = reference(action.signature(), permit.attempt());
            let permit = permit.justified_by(&wish)?;
            match permit.run(|granted| send(at, write, &granted, line, &reference)) {
                Ok(done) => return Ok(Reply::Done(done.text().unwrap_or_default().to_owned())),
                Err(RunError::Failed { why, .. }) => return Ok(Reply::Failed(why)),
                // What became of it is asked on the next round.
                Err(RunError::Uncertain { .. }) => tally.unanswered = tally.unanswered.saturating_add(1),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Asks the airline what became of an attempt, and puts that on record: its answer, or that it never arrived.
fn settle<A: Action>(attempt: Withheld<'_, A, Arc<dyn Store>, Attempt>, line: &Line) -> Result<Option<String>> {
    let found = line.airline.find(&reference(attempt.signature(), attempt.number()))?.map(|effect| effect.answer);
    let settlement = match &found {
        Some(answer) => Settlement::done(answer.as_str(), "the airline has it under this reference")?,
        None => Settlement::not_done("the airline has nothing under this reference")?,
    };
    attempt.settle(settlement).wait()?;
    Ok(found)
}

/// What the airline books an attempt under.
fn reference(request: Signature, attempt: u64) -> String {
    format!("{request}:{attempt}")
}

/// Nothing but a permit can call it.
fn send<A: Action + Serialize>(
    at: usize,
    write: &Write,
    granted: &Granted<'_, A>,
    line: &Line,
    reference: &str,
) -> Result<String, Failure> {
    let request = Request::of(&**granted).map_err(|error| Failure::without_effect(error.to_string()))?;
    match line.send(at, write, &request, Some(reference)) {
        Ok(Answer::Done(text)) => Ok(text),
        Ok(Answer::Rejected(words)) => Err(Failure::without_effect(words)),
        Ok(Answer::TimedOut) => Err(Failure::unknown("no answer")),
        Err(error) => Err(Failure::unknown(format!("{error:#}"))),
    }
}

impl Agent for Kept {
    fn takes(&mut self, turn: &Turn, progress: &mut Progress) -> Result<()> {
        let span = match turn {
            Turn::System(text) => NewSpan::notice(text.as_str()),
            Turn::Customer(text) => NewSpan::human(text.as_str()),
            Turn::Agent(text) => NewSpan::model(text.as_str()),
            Turn::Read { tool, of, text } if text.starts_with("Error") => {
                NewSpan::tool(tool.as_str(), text.as_str()).reads(of.as_str()).failed()
            }
            Turn::Read { tool, of, text } => NewSpan::tool(tool.as_str(), text.as_str()).reads(of.as_str()),
            Turn::Write(_) | Turn::TopUp(..) => bail!("nothing that is said or read"),
        };
        self.window.lanes().route(span)?;
        self.make_room(&mut progress.tally)
    }

    fn calls(&mut self, at: usize, write: &Write, line: &Line, progress: &mut Progress) -> Result<()> {
        let call = format!("turn-{at}");
        // After a kill the call is in the window already, without its result.
        if !self.window.open_calls().iter().any(|open| *open.call == *call) {
            let text = format!("{} {}", write.request.tool, write.request.arguments);
            self.window.lanes().route(NewSpan::model(text).calls([call.as_str()]))?;
        }
        let tally = &mut progress.tally;
        let reply = typed!(&write.request, action => self.attempt(at, write, &action, line, tally)?);
        let result = match reply {
            Reply::Done(text) => NewSpan::tool(write.request.tool.as_str(), text),
            Reply::Failed(why) => NewSpan::tool(write.request.tool.as_str(), why).failed(),
        };
        self.window.lanes().route(result.answers(call.as_str()))?;
        self.make_room(tally)
    }
}

/// What the journal says of the permits that an agent got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Permits {
    /// Attempts that ran.
    pub attempts: u64,
    /// Of these after a failure, since what it failed under had changed.
    pub retried: u64,
    /// Of these repeats, by an override with its reason.
    pub overridden: u64,
    /// Attempts of which it was found out later that they had taken effect.
    pub settled_done: u64,
    /// Attempts of which it was found out later that they had not.
    pub settled_not_done: u64,
    /// Spans that were brought back for a permit.
    pub brought_back: u64,
}

impl Permits {
    /// Reads the journal of an agent that is through.
    pub fn read(path: &Path, place: &Place) -> Result<Self> {
        let store = place.open(path)?;
        let history = History::read(&store, &EpisodeId::new(EPISODE))?;
        let (mut permits, mut failed) = (Self::default(), BTreeSet::new());
        for happening in history.entries().iter().flat_map(|entry| &entry.happenings) {
            permits.count(happening, &mut failed);
        }
        Ok(permits)
    }

    /// `failed` are the requests whose latest attempt failed without effect.
    fn count(&mut self, happening: &Happening, failed: &mut BTreeSet<Digest>) {
        let add = |number: &mut u64| *number = number.saturating_add(1);
        match happening {
            Happening::Intended { signature, repeats, .. } => {
                add(&mut self.attempts);
                match (repeats, failed.remove(signature)) {
                    (Some(_), _) => add(&mut self.overridden),
                    (None, true) => add(&mut self.retried),
                    (None, false) => {}
                }
            }
            Happening::Failed { signature, .. } => {
                failed.insert(*signature);
            }
            Happening::Done { how: Some(_), .. } => add(&mut self.settled_done),
            Happening::NotDone { .. } => add(&mut self.settled_not_done),
            Happening::Restored { .. } => add(&mut self.brought_back),
            _ => {}
        }
    }
}
