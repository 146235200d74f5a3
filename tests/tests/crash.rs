//! A process is killed (SIGKILL) at a random moment, again and again over the same file, and another goes on (rule R26).
//! What it was told is committed is there, what left the window has its text in the file, no pass is half done, and the
//! window is the one that the log comes to.
//!
//! `cargo test -p keepspan-tests --test crash` kills 25 times; for a long run, with its numbers:
//! `KEEPSPAN_KILLS=1000 cargo test -p keepspan-tests --test crash -- --nocapture`.
#![cfg(unix)]

use std::{
    collections::BTreeMap,
    env,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant, SystemTime},
};

use keepspan::{
    Digest, EpisodeId, JournalError, OneByteAToken, PruneEvent, Window,
    audit::{self, Happening, History, LogEntry, Standing},
    store::{EmbeddedStore, Store as _, StoreError},
};
use keepspan_tests::{
    Agent,
    crash::{Work, believed},
    spans,
};

type Checked<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// What a killed process had said.
struct Last {
    /// What it believed after its last commit that returned; none when it had not come so far.
    believed: Option<String>,
    /// Whether it was in a commit, or opening.
    within: bool,
}

/// Starts a process over the file and kills it after a while.
fn killed(path: &Path, work: Work, seed: u64, after: Duration) -> Checked<Last> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_crash-child"))
        .args([path.as_os_str(), format!("{work:?}").as_ref(), seed.to_string().as_ref()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut out = BufReader::new(child.stdout.take().ok_or("no pipe")?);
    let reader = thread::spawn(move || {
        let (mut last, mut line) = (Last { believed: None, within: true }, String::new());
        // A line that was cut off was not said.
        while matches!(out.read_line(&mut line), Ok(1..)) && line.ends_with('\n') {
            last.within = line == "begins\n";
            if let Some(believed) = line.trim_end().strip_prefix("done ") {
                last.believed = Some(believed.to_owned());
            }
            line.clear();
        }
        last
    });
    thread::sleep(after);
    child.kill()?;
    let output = child.wait_with_output()?;
    // Nothing but the kill ended it.
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&output.status),
        Some(9),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    reader.join().map_err(|_| "the reader panicked".into())
}

/// What the kills of one kind of work met.
#[derive(Debug, Default)]
struct Met {
    kills: u64,
    /// After a commit had returned.
    after: u64,
    /// Within another one.
    within: u64,
    /// That one was there all the same.
    landed: u64,
    /// Records, passes and fallbacks, and tombstones that were read and checked, each time anew.
    records: u64,
    passes: u64,
    tombstones: u64,
}

/// How many spans a commit's booking says have left; none for one that books nothing.
fn booked(entry: &LogEntry) -> Option<u64> {
    entry.happenings.iter().find_map(|happening| match happening {
        Happening::Pruning(PruneEvent::Passed(pass)) => Some(pass.spans),
        Happening::Pruning(PruneEvent::FellBack { spans, .. }) => Some(*spans),
        _ => None,
    })
}

/// The file is whole, and the window that is resumed from it is what the log and the killed process say.
fn check(path: &Path, work: Work, last: &Last, met: &mut Met) -> Checked {
    let id = EpisodeId::new("e");
    let store = EmbeddedStore::open(path)?;
    let told = match last.believed.as_ref().and_then(|believed| believed.split(' ').next()) {
        Some(records) => records.parse::<u64>()?,
        None => 0,
    };
    let history = match History::read(&store, &id) {
        Err(JournalError::NoEpisode { .. }) if told == 0 => return Ok(()),
        history => history?,
    };
    let records = u64::try_from(history.entries().len())?;
    // What was acknowledged is there, and at most the commit that was under way.
    assert!(told <= records && (told == 0 || records <= told + u64::from(last.within)), "{records} of {told}");
    met.landed += u64::from(told > 0 && records > told);
    met.records += records;
    let verified = audit::verify(&store, &id, |_| {});
    assert!(verified.faults.is_empty(), "{:?}", verified.faults);
    for entry in history.entries() {
        let left: Vec<_> = entry
            .happenings
            .iter()
            .filter_map(|happening| match happening {
                Happening::Left(tombstone) => Some(tombstone),
                _ => None,
            })
            .collect();
        for tombstone in &left {
            match store.get(&tombstone.sha256()) {
                Ok(bytes) => assert_eq!(Digest::of(&bytes), tombstone.sha256()),
                Err(StoreError::Sealed { .. }) => {
                    assert!(matches!(history.span(tombstone.span()), Some((_, Standing::Gone { .. }))));
                }
                Err(error) => return Err(error.into()),
            }
        }
        met.tombstones += u64::try_from(left.len())?;
        if let Some(spans) = booked(entry) {
            met.passes += 1;
            assert_eq!(u64::try_from(left.len())?, spans, "half a pass in record {}", entry.record);
        }
    }
    let mut window = Window::<Agent, _>::resume_with(store, work.episode(), OneByteAToken)?;
    let rendered: u64 = window.render().iter().map(|message| u64::from(message.tokens())).sum();
    assert_eq!((window.utilization(), history.utilization()), (rendered, rendered));
    assert_eq!(window.policy(), "p".into());
    let mut residents = Vec::new();
    let lanes = window.lanes();
    for lane in [
        lanes.schema.resident(),
        lanes.failed.resident(),
        lanes.work.resident(),
        lanes.decisions.resident(),
        lanes.recap.resident(),
    ] {
        residents.extend(lane);
    }
    residents.sort_unstable();
    let standing = history.spans().filter(|(_, standing)| *standing == Standing::Resident);
    assert_eq!(residents, standing.map(|(facts, _)| facts.span).collect::<Vec<_>>());
    // Every number is a text, a reason, or known to be lost.
    let missing = window.missing();
    for span in spans(&window) {
        let recalled = window.recall(span).wait();
        let gone = matches!(recalled, Err(keepspan::RecallError::Discarded { .. }));
        assert_eq!(recalled.is_ok() || gone, !missing.contains(&span), "{span}");
    }
    if let Some(said) = last.believed.as_ref().filter(|_| told == records) {
        // One record more is of the resumption, and may say another policy.
        let now = believed(&window);
        let shown = |believed: &str| believed.split_once(' ').map(|(_, shown)| shown.to_owned());
        assert_eq!(shown(&now), shown(said));
    }
    Ok(())
}

#[test]
fn a_process_that_is_killed_leaves_a_window_that_goes_on() -> Checked {
    let kills = env::var("KEEPSPAN_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(25_u64);
    let seed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_nanos();
    let seed = env::var("KEEPSPAN_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(u64::try_from(seed)?);
    let (begun, mut dice) = (Instant::now(), seed | 1);
    let mut files = BTreeMap::new();
    let mut seen = BTreeMap::<Work, Met>::new();
    for kill in 0..kills {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let work = Work::ALL[usize::try_from(kill)? % Work::ALL.len()];
        let random = dice >> 33;
        // A new file for each creation, and one for some stops of each other work.
        let fresh = work == Work::Create || kill % 100 < 5;
        if fresh || !files.contains_key(&work) {
            files.insert(work, tempfile::tempdir()?);
        }
        let path = files.get(&work).ok_or("no folder")?.path().join("store");
        let most = match work {
            Work::Create => 100_000,
            Work::Large => 250_000,
            Work::Small | Work::Passes | Work::Redact => 120_000,
        };
        let after = Duration::from_micros(random % most);
        let last = killed(&path, work, dice, after)?;
        let met = seen.entry(work).or_default();
        met.kills += 1;
        met.after += u64::from(last.believed.is_some());
        met.within += u64::from(last.within && last.believed.is_some());
        check(&path, work, &last, met).map_err(|error| format!("kill {kill} of seed {seed}, {work:?}: {error}"))?;
    }
    println!("{kills} kills in {:.1?}, seed {seed}", begun.elapsed());
    for (work, met) in &seen {
        println!("{work:?}: {met:?}");
    }
    assert!(seen.values().any(|met| met.within > 0), "no kill hit a commit: {seen:?}");
    Ok(())
}
