//! Side effects, done once: write calls are replayed against an airline in an embedded database, by an agent that forgets
//! what left its memory and is killed in the middle of calls.
//!
//! `cargo run --example side_effects` replays made-up calls in the shape of recorded ones; with the corpus
//! (`KEEPSPAN_CORPUS`, or `--corpus`) recorded ones of tau-bench and tau2-bench too, where one agent sends one identical
//! update 94 times. Each conversation is replayed in three ways: every call is sent as it comes; by an agent that looks into
//! its list of messages first, of which the oldest are dropped; and on keepspan's permits. All three meet the same faults:
//! of the writes that are wanted, the first, fourth, .. of a conversation lose their process after the effect, the second, ..
//! get no answer, the third, .. lose their process before. The plain agents send such a call again; with keepspan the airline
//! is asked what became of it.
//!
//! An effect is a duplicate where the same request had taken effect before and that still stands, that is, nothing cancelled
//! or changed it since, and the customer did not ask for it twice. The same rule says when a repeat gets its override.
//!
//! Measured: the airline's ledger, after real kills of real processes. Simulated: the agent, which makes the calls whatever
//! it is answered; the customer; the faults; and of recorded calls what the airline rejects by rules that the recordings do
//! not show, which are its recorded words.
//!
//! Exit code: 0 with keepspan every wanted effect happened once and no other, 1 it did not, 2 usage, input or I/O error.

use std::{
    io::{IsTerminal as _, Write as _},
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context as _, Result, bail};
use clap::Parser;

mod calls;
mod job;
mod kept;
mod line;
mod own;
#[path = "../place.rs"]
mod place;
mod plain;
mod report;
mod requests;
mod service;

use calls::{Conversation, Source};
use job::{Job, Mode, Progress};
use kept::Permits;
use line::{Fault, Faults, faults};
use place::Place;
use report::{Came, Compared};
use service::Airline;

const EXIT_CODES: &str = "\
Exit codes: 0 with keepspan every wanted effect happened once and no other; 1 it did not;
2 the command line is wrong, or a file cannot be read or written.";

/// Replays write calls against an airline: every one as it comes, with a list of messages to look into,
/// and on keepspan's permits.
///
/// They are made-up calls in the shape of recorded ones; with `--corpus` also recorded ones of tau-bench
/// and tau2-bench. The agent forgets, and is killed in the middle of calls.
#[derive(Parser)]
#[command(verbatim_doc_comment, after_help = EXIT_CODES)]
struct Args {
    /// The folder with the recordings of tau-bench and tau2-bench
    #[arg(long, env = "KEEPSPAN_CORPUS")]
    corpus: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Work on the job in this folder: what the processes that are killed are started with
    #[arg(long, hide = true)]
    work: Option<PathBuf>,
    #[command(flatten)]
    place: Place,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match &args.work {
        Some(folder) => job::work(folder, &args.place).map(|()| true),
        None => run(&args),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(args: &Args) -> Result<bool> {
    let mut sources = vec![own::source()];
    match &args.corpus {
        Some(folder) => sources.extend(calls::corpus(folder)?),
        None => eprintln!(
            "made-up calls in the shape of recorded ones; `--corpus DIR` adds recorded ones of tau-bench and tau2-bench"
        ),
    }
    let all = sources.iter().map(|source| compare(source, &args.place)).collect::<Result<Vec<_>>>()?;
    if args.json {
        println!("{}", serde_json::json!(all));
    } else {
        print!("{}", report::table(&all));
        println!("measured: the airline's ledger after real kills; simulated: the agent, the customer and the faults");
        if args.corpus.is_some() {
            println!("of recorded calls also: rejections by rules that the recordings do not show, in their words");
        }
    }
    let broken: Vec<_> = all.iter().flat_map(Compared::broken).collect();
    if !args.json {
        println!("\n{}", report::verdict(&all, broken.is_empty()));
    }
    for what in &broken {
        eprintln!("BROKEN {what}");
    }
    Ok(broken.is_empty())
}

fn compare(source: &Source, place: &Place) -> Result<Compared> {
    let mut compared = Compared { source: source.name, recorded: source.recorded, ..Compared::default() };
    for (at, conversation) in source.conversations.iter().enumerate() {
        progress(source, at);
        let within = || format!("{}, conversation {}", source.name, conversation.name);
        let undisturbed = replay(Mode::Every, conversation, Faults::new(), place).with_context(within)?;
        let wanted = report::wanted(&undisturbed.effects, conversation);
        let faults = faults(wanted.iter().map(|effect| effect.turn));
        let [every, list, keepspan] =
            Mode::ALL.map(|mode| replay(mode, conversation, faults.clone(), place).with_context(within));
        compared.add(conversation, &undisturbed, &wanted, &[every?, list?, keepspan?]);
    }
    Ok(compared)
}

fn progress(source: &Source, at: usize) {
    if std::io::stderr().is_terminal() {
        eprint!("\r{}: {}/{}   \r", source.name, at.saturating_add(1), source.conversations.len());
        let _ = std::io::stderr().flush();
    }
}

/// Replays a conversation in processes of its own, one after each kill, until it is through.
fn replay(mode: Mode, conversation: &Conversation, faults: Faults, place: &Place) -> Result<Came> {
    let folder = tempfile::tempdir()?;
    let planned = faults.values().filter(|fault| **fault != Fault::TimedOut).count();
    job::save(&folder.path().join("job.json"), &Job { mode, conversation: conversation.clone(), faults })?;
    let mut kills = 0_usize;
    while !ended(folder.path(), place)? {
        kills = kills.saturating_add(1);
        if kills > planned {
            bail!("a process ended otherwise than by the {planned} kills that were planned");
        }
    }
    let airline = Airline::open(&folder.path().join("airline.db"), conversation)?;
    let progress: Progress = job::load(&folder.path().join("progress.json"))?.unwrap_or_default();
    let permits = match mode {
        Mode::Keepspan => Permits::read(&folder.path().join("agent.db"), place)?,
        Mode::Every | Mode::List => Permits::default(),
    };
    let (effects, rejected) = (airline.effects()?, airline.rejected()?);
    Ok(Came { effects, rejected, kills: u64::try_from(kills)?, tally: progress.tally, permits })
}

/// Whether a process came to the end of the job; it did not where it was killed.
fn ended(folder: &Path, place: &Place) -> Result<bool> {
    let child = Command::new(std::env::current_exe()?).arg("--work").arg(folder).args(place.arguments()).output()?;
    match child.status.code() {
        Some(0) => Ok(true),
        // A signal, or what stands for it where there are none.
        None | Some(..0) => Ok(false),
        Some(_) => bail!("{}", String::from_utf8_lossy(&child.stderr).trim_start_matches("error: ").trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use keepspan::Action as _;
    use serde_json::json;

    use super::*;
    use crate::{
        calls::{Turn, Write},
        requests::{Request, typed},
        service::Effect,
    };

    fn write(
        turn: usize,
        airline: &Airline,
        tool: &str,
        arguments: serde_json::Value,
    ) -> Result<Result<String, String>> {
        airline.write(turn, &Request { tool: tool.to_owned(), arguments }, Some(&format!("r{turn}")), None)
    }

    /// A typed request has the signature of the call that it was read from, and is sent as that call.
    #[test]
    fn typed_requests_are_the_calls() -> Result<()> {
        let mut tools = BTreeSet::new();
        for conversation in own::source().conversations {
            for (_, Write { request, .. }) in conversation.writes() {
                let (signature, sent) =
                    typed!(request, action => anyhow::Ok((action.signature(), Request::of(&action)?.signature())))?;
                assert_eq!((signature, sent), (request.signature(), request.signature()), "{}", request.tool);
                tools.insert(request.tool.clone());
            }
        }
        assert_eq!(tools, calls::WRITES.into_iter().map(str::to_owned).collect());
        Ok(())
    }

    #[test]
    fn a_rejected_write_changes_nothing() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let conversation = Conversation {
            reservations: ["A".to_owned()].into(),
            balances: vec![("one".to_owned(), 100.0), ("two".to_owned(), 10.0)],
            ..Conversation::default()
        };
        let airline = Airline::open(&folder.path().join("airline.db"), &conversation)?;
        let book = |two: u32| json!({ "payment_methods": [{ "payment_id": "one", "amount": 60 }, { "payment_id": "two", "amount": two }] });
        assert!(write(0, &airline, "book_reservation", book(11))?.is_err());
        assert!(write(1, &airline, "cancel_reservation", json!({ "reservation_id": "B" }))?.is_err());
        assert!(airline.effects()?.is_empty() && airline.find("r0")?.is_none());
        // The first payment method still has all of its balance.
        assert!(write(2, &airline, "book_reservation", book(10))?.is_ok());
        assert!(write(3, &airline, "cancel_reservation", json!({ "reservation_id": "A" }))?.is_ok());
        assert!(write(4, &airline, "cancel_reservation", json!({ "reservation_id": "A" }))?.is_err());
        assert_eq!(airline.rejected()?, [0, 1, 4]);
        assert_eq!(airline.find("r3")?.map(|effect| effect.turn), Some(3));
        Ok(())
    }

    /// Business, economy, business: the last is no duplicate of the first. The same once more is.
    #[test]
    fn what_was_changed_since_does_not_stand() {
        let change = |turn, cabin| Effect {
            turn,
            request: Request { tool: "update_reservation_flights".to_owned(), arguments: json!({ "cabin": cabin }) },
            reservation: Some("A".to_owned()),
            answer: String::new(),
        };
        let effects = [change(0, "business"), change(1, "economy"), change(2, "business"), change(3, "business")];
        let turns = |conversation: &Conversation| {
            report::wanted(&effects, conversation).iter().map(|effect| effect.turn).collect::<Vec<_>>()
        };
        let mut conversation = Conversation::default();
        assert_eq!(turns(&conversation), [0, 1, 2]);
        let asked = |again: Option<&str>| {
            let request = Request { tool: String::new(), arguments: json!(null) };
            Turn::Write(Write { request, again: again.map(str::to_owned), made: None })
        };
        conversation.turns = vec![asked(None), asked(None), asked(None), asked(Some("for the way back"))];
        assert_eq!(turns(&conversation), [0, 1, 2, 3]);
    }
}
