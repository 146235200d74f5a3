//! Processes that act on one store: of many one does it, and one that dies leaves nothing fresh that it did (rule R19).
//!
//! `cargo test -p keepspan-tests --test permit_crash` kills in 6 rounds; for a long run, with its numbers:
//! `KEEPSPAN_KILLS=200 cargo test -p keepspan-tests --test permit_crash -- --nocapture`.
#![cfg(unix)]

use std::{
    env,
    error::Error,
    os::unix::process::ExitStatusExt as _,
    path::Path,
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, SystemTime},
};

use keepspan::{
    Action, Episode, Override, Permission, Window,
    action::{RunError, Settlement, Tried},
    store::EmbeddedStore,
};
use keepspan_tests::{
    Agent,
    acts::{Send, Write, append, lines, ready},
};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn child(arguments: &[&std::ffi::OsStr]) -> Outcome<Child> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_act-child"));
    Ok(command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?)
}

fn racer(store: &Path, effects: &Path, name: &str, request: &str) -> Outcome<Child> {
    child(&["race".as_ref(), store.as_ref(), effects.as_ref(), name.as_ref(), request.as_ref()])
}

/// What a child said; empty where it was killed before.
fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

#[test]
fn of_8_processes_one_runs_it() -> Outcome {
    let folder = tempfile::tempdir()?;
    let (store, effects) = (folder.path().join("store"), folder.path().join("effects"));
    for round in 0..4_usize {
        let request = format!("request {round}");
        let racers: Vec<_> = (0..8)
            .map(|name| racer(&store, &effects, &format!("{round}.{name}"), &request))
            .collect::<Result<_, _>>()?;
        let mut told = Vec::new();
        for racer in racers {
            let output = racer.wait_with_output()?;
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            told.push(said(&output));
        }
        let effects = lines(&effects);
        assert_eq!(effects.len(), round + 1, "{effects:?}");
        // Who ran it says so, and everybody else was told by whom.
        let by = effects.last().ok_or("no effect")?;
        told.sort_unstable();
        let (ran, done) = (format!("ran {request} by {by}"), format!("done {request} by {by}"));
        assert_eq!(told, [vec![done; 7], vec![ran]].concat());
    }
    Ok(())
}

#[test]
fn of_8_processes_that_are_killed_at_most_one_runs_it() -> Outcome {
    let rounds = env::var("KEEPSPAN_KILLS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(6_u64);
    let seed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_nanos();
    let seed = env::var("KEEPSPAN_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(u64::try_from(seed)?);
    let mut dice = seed | 1;
    let (mut killed, mut done, mut uncertain, mut fresh) = (0, 0, 0, 0);
    let folder = tempfile::tempdir()?;
    let (store, effects) = (folder.path().join("store"), folder.path().join("effects"));
    for round in 0..rounds {
        let request = format!("request {round}");
        let before = lines(&effects).len();
        let mut racers: Vec<_> = (0..8)
            .map(|name| racer(&store, &effects, &format!("{round}.{name}"), &request))
            .collect::<Result<_, _>>()?;
        let mut ends = Vec::new();
        while !racers.is_empty() {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // From at once to when all are done.
            thread::sleep(Duration::from_micros((dice >> 33) % (1 + round % 4 * 4_000)));
            let mut racer = racers.remove(usize::try_from(dice >> 40)? % racers.len());
            let sent = racer.kill();
            let output = racer.wait_with_output()?;
            sent?;
            assert!(
                output.status.success() || output.status.signal() == Some(9),
                "round {round} of seed {seed}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
            killed += u32::from(output.status.signal() == Some(9));
            ends.push(said(&output));
        }
        let ran = lines(&effects).len() - before;
        assert!(ran <= 1, "round {round} of seed {seed}: {ran} runs, {ends:?}");
        // Before anybody settles it, from another window, which reads the file as it was left.
        let (mut window, _) = ready(EmbeddedStore::open(&store)?, &format!("judge {round}"))?;
        let action = Write::to(request);
        let expected = match window.permit(&action)? {
            Permission::Done(outcome) => {
                done += 1;
                assert_eq!(ran, 1);
                assert!(outcome.text().is_some_and(|text| text.starts_with(&action.to)));
                None
            }
            Permission::Uncertain(attempt) => {
                uncertain += 1;
                let settlement = match ran {
                    0 => Settlement::not_done("no line")?,
                    _ => Settlement::done("a line", "looked")?,
                };
                attempt.settle(settlement).wait()?;
                (ran == 0).then_some(2)
            }
            Permission::Fresh(permit) => {
                fresh += 1;
                assert_eq!(ran, 0, "round {round} of seed {seed}: fresh, and it was done");
                Some(permit.attempt())
            }
            other => return Err(format!("{other:?}").into()),
        };
        assert!(!ends.iter().any(|end| end.starts_with("ran") || end.starts_with("done")) || expected.is_none());
        match (window.permit(&action)?, expected) {
            (Permission::Done(_), None) => {}
            (Permission::Fresh(permit), Some(attempt)) => {
                assert_eq!(permit.attempt(), attempt);
                permit.run(|_| append(&effects, "judge").map(|()| "done now"))?;
            }
            (other, _) => return Err(format!("{other:?}").into()),
        }
        assert_eq!(lines(&effects).len() - before, 1);
    }
    println!("{killed} of {} killed, seed {seed}: {done} done, {uncertain} uncertain, {fresh} fresh", rounds * 8);
    assert!(killed > 0, "nobody was killed");
    Ok(())
}

/// Runs the batch in a process that ends at `point`; gives the store and the effects' file.
fn batch(folder: &Path, point: &str) -> Outcome<(std::path::PathBuf, std::path::PathBuf)> {
    let (store, effects) = (folder.join("store"), folder.join("effects"));
    let output = child(&["batch".as_ref(), store.as_ref(), effects.as_ref(), point.as_ref()])?.wait_with_output()?;
    let told_to = match output.status.signal() {
        Some(6) => !point.ends_with("panic"),
        None => point.ends_with("panic") && String::from_utf8_lossy(&output.stderr).contains("told to"),
        _ => false,
    };
    assert!(told_to, "{point}: {:?} {}", output.status, String::from_utf8_lossy(&output.stderr));
    Ok((store, effects))
}

/// What a window says of a call.
fn state(tried: &Tried) -> String {
    match tried {
        Tried::Never { before: None } => "not started".to_owned(),
        Tried::Done(done) => format!("done: {}", done.text().unwrap_or_default()),
        Tried::Uncertain(_) => "uncertain".to_owned(),
        other => format!("{other:?}"),
    }
}

/// B027: a crash in the middle of a batch says of each call whether it was done, and runs none of them again.
#[test]
fn a_crash_at_any_point_of_a_batch_runs_nothing_twice() -> Outcome {
    let (new, uncertain) = ("not started", "uncertain");
    for (point, c1, c2, ran) in [
        ("new", new, new, &[][..]),
        ("c1 intent", uncertain, new, &[]),
        ("c1 panic", uncertain, new, &[]),
        ("c1 effect", uncertain, new, &["c1"]),
        ("c1 outcome", "done: c1 done", new, &["c1"]),
        ("c2 intent", "done: c1 done", uncertain, &["c1"]),
        ("c2 panic", "done: c1 done", uncertain, &["c1"]),
        ("c2 effect", "done: c1 done", uncertain, &["c1", "c2"]),
        ("c2 outcome", "done: c1 done", "done: c2 done", &["c1", "c2"]),
    ] {
        let folder = tempfile::tempdir()?;
        let (store, effects) = batch(folder.path(), point)?;
        assert_eq!(lines(&effects), ran, "{point}");
        let mut window = Window::<Agent, _>::resume(EmbeddedStore::open(&store)?, Episode::new("batch", "p"))?;
        let calls = [Write::to("c1").signature(), Send { text: "c2".into() }.signature(), Write::to("c3").signature()];
        for (signature, expected) in calls.into_iter().zip([c1, c2, new]) {
            assert_eq!(state(&window.tried(signature)?), expected, "{point}");
        }
        // c1 goes on from there, and in the end was done once.
        let action = Write::to("c1");
        if let Permission::Uncertain(attempt) = window.permit(&action)? {
            assert_eq!((attempt.number(), attempt.episode().as_str()), (1, "batch"));
            let settlement = match lines(&effects).is_empty() {
                true => Settlement::not_done("no line")?,
                false => Settlement::done("c1 done", "a line")?,
            };
            attempt.settle(settlement).wait()?;
        }
        match window.permit(&action)? {
            Permission::Fresh(permit) => {
                permit.run(|_| append(&effects, "c1").map(|()| "c1 done"))?;
            }
            Permission::Done(done) => assert_eq!(done.text(), Some("c1 done"), "{point}"),
            other => return Err(format!("{point}: {other:?}").into()),
        }
        assert_eq!(lines(&effects).iter().filter(|line| *line == "c1").count(), 1, "{point}");
    }
    Ok(())
}

/// B028: what was approved and done before the process died is not done again on the same approval.
#[test]
fn an_approval_is_spent_although_the_process_died() -> Outcome {
    let folder = tempfile::tempdir()?;
    let (store, effects) = batch(folder.path(), "c2 effect")?;
    let mut window = Window::<Agent, _>::resume(EmbeddedStore::open(&store)?, Episode::new("batch", "p"))?;
    let action = Send { text: "c2".into() };
    let target = window.lanes().target.resident();
    let evidence = window.lanes().target.cite(*target.first().ok_or("no target")?)?;
    let approved = *window.lanes().rules.resident().first().ok_or("no approval")?;
    let consent = window.lanes().rules.consent(approved)?;
    let Permission::Uncertain(attempt) = window.permit(&action)? else { return Err("not uncertain".into()) };
    // Neither an override nor a settlement makes the approval good again.
    let permit = attempt.repeat(Override::because("the mail did not arrive")?).map_err(|denied| denied.into_inner())?;
    let spent =
        permit.justified_by(&evidence)?.consented_by(consent)?.run(|_| append(&effects, "c2").map(|()| "again"));
    assert!(matches!(spent, Err(RunError::Spent { span, .. }) if span == approved), "{spent:?}");
    let Permission::Uncertain(attempt) = window.permit(&action)? else { return Err("not uncertain".into()) };
    assert_eq!(attempt.number(), 1);
    attempt.settle(Settlement::not_done("so it is said")?).wait()?;
    let consent = window.lanes().rules.consent(approved)?;
    let permit = window.permit(&action)?.fresh()?;
    let spent =
        permit.justified_by(&evidence)?.consented_by(consent)?.run(|_| append(&effects, "c2").map(|()| "again"));
    assert!(matches!(spent, Err(RunError::Spent { .. })), "{spent:?}");
    assert_eq!(lines(&effects), ["c1", "c2"]);
    // A person who is asked again can.
    let again = window.lanes().rules.push(keepspan::NewSpan::human("yes, once more"))?;
    let consent = window.lanes().rules.consent(again)?;
    let permit = window.permit(&action)?.fresh()?;
    let effect = |_: keepspan::Granted<'_, Send>| append(&effects, "c2").map(|()| "again");
    let done = permit.justified_by(&evidence)?.consented_by(consent)?.run::<&str, _>(effect);
    assert_eq!(done?.text(), Some("again"));
    Ok(())
}
