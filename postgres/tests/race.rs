//! Many processes on one store: one runs the action, and one owns the episode.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

mod common;

use std::{
    env,
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use common::{fresh, named, open, server};
use keepspan::{
    ApplyError, ByteEstimate, CommitError, Episode, EpisodeId, Failure, Granted, Limits, NewSpan, OneByteAToken,
    Permission, ResumeError, SpanId, Window,
    action::RunError,
    audit::{self, History},
    tool::Answer,
};
use keepspan_postgres::{Blocking, Options, PostgresStore};
use keepspan_tests::{
    Agent,
    acts::{Write, append, lines, ready},
};

const RACERS: usize = 8;
const ROUNDS: usize = 5;

/// One racer, in a process of its own: this test again, told so by its environment. Waits for a line before each request.
fn race(store: &str, effects: &Path, name: &str) {
    let (address, schema) = store.split_once(' ').unwrap();
    let store = Blocking::connect(Options::new(address).unwrap().schema(schema).unwrap()).unwrap();
    let (mut window, _) = ready(store, name).unwrap();
    let mut requests = std::io::stdin().lines();
    println!("racer: ready");
    while let Some(Ok(request)) = requests.next() {
        let said = match window.permit(&Write::to(request.as_str())).unwrap() {
            Permission::Fresh(permit) => {
                let effect = |granted: Granted<'_, Write>| {
                    append(effects, &granted.to)?;
                    // So that others come while it runs.
                    thread::sleep(Duration::from_millis(20));
                    Ok::<_, Failure>(format!("by {name}"))
                };
                match permit.run(effect) {
                    Ok(_) => "ran".to_owned(),
                    Err(RunError::Taken { .. }) => "taken".to_owned(),
                    Err(error) => panic!("{error:?}"),
                }
            }
            Permission::Done(done) => format!("done {}", done.text().unwrap()),
            Permission::Uncertain(_) => "uncertain".to_owned(),
            other => panic!("{other:?}"),
        };
        println!("racer: {said}");
    }
}

struct Racer {
    child: Child,
    said: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Racer {
    fn start(store: &str, effects: &Path, number: usize) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "of_8_processes_one_runs_it", "--nocapture"])
            .envs([("KEEPSPAN_TEST_RACE", store), ("KEEPSPAN_TEST_RACER", &format!("racer {number}"))])
            .env("KEEPSPAN_TEST_EFFECTS", effects)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, said }
    }

    fn tell(&mut self, request: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{request}").unwrap();
    }

    /// What it says next, beside what the test harness says.
    fn said(&mut self) -> String {
        let mut own =
            self.said.by_ref().map(Result::unwrap).filter_map(|line| Some(line.split_once("racer: ")?.1.to_owned()));
        own.next().expect("it ended")
    }
}

#[tokio::test]
async fn of_8_processes_one_runs_it() {
    if let Ok(store) = env::var("KEEPSPAN_TEST_RACE") {
        let effects = env::var_os("KEEPSPAN_TEST_EFFECTS").unwrap();
        let name = env::var("KEEPSPAN_TEST_RACER").unwrap();
        tokio::task::spawn_blocking(move || race(&store, effects.as_ref(), &name)).await.unwrap();
        return;
    }
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let options = fresh(&address).await;
    let folder = tempfile::tempdir().unwrap();
    let (store, effects) = (format!("{address} {}", named(&options)), folder.path().join("effects"));
    let mut racers: Vec<_> = (0..RACERS).map(|number| Racer::start(&store, &effects, number)).collect();
    for racer in &mut racers {
        assert_eq!(racer.said(), "ready");
    }
    let mut overlapped = 0;
    for round in 0..ROUNDS {
        let request = format!("request {round}");
        racers.iter_mut().for_each(|racer| racer.tell(&request));
        let told: Vec<_> = racers.iter_mut().map(Racer::said).collect();
        assert_eq!(lines(&effects).len(), round + 1, "{told:?}");
        let winner = told.iter().position(|said| said == "ran").expect("one ran it");
        let done = format!("done by racer {winner}");
        for (number, said) in told.iter().enumerate().filter(|(number, _)| *number != winner) {
            assert!(["taken", "uncertain", &done].contains(&said.as_str()), "{number} said {said}");
        }
        overlapped += told.iter().filter(|said| matches!(said.as_str(), "taken" | "uncertain")).count();
        // Everybody is told by whom, asked again.
        racers.iter_mut().for_each(|racer| racer.tell(&request));
        for racer in &mut racers {
            assert_eq!(racer.said(), done);
        }
    }
    assert!(overlapped > 0, "nobody came second");
    assert_eq!(lines(&effects).len(), ROUNDS);
    for racer in &mut racers {
        drop(racer.child.stdin.take());
        assert!(racer.child.wait().unwrap().success());
    }
    // And what they left checks out.
    let (schema, number) = (named(&options), RACERS);
    let verified = tokio::task::spawn_blocking(move || {
        let store = Blocking::connect(Options::new(&address).unwrap().schema(schema).unwrap()).unwrap();
        let episodes = (0..number).map(|number| EpisodeId::new(format!("racer {number}")));
        episodes.map(|episode| audit::verify(&store, &episode, |_| {})).collect::<Vec<_>>()
    });
    for verified in verified.await.unwrap() {
        assert!(verified.faults.is_empty() && verified.records > 0, "{verified:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_owners_one_is_superseded() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let options = fresh(&address).await;
    let mut first =
        Window::<Agent, _>::open_async(open(&options).await, Episode::new("e", "p"), ByteEstimate).await.unwrap();
    first.lanes().work.push("a diff").unwrap();
    drop(first.lanes().externalize().await.unwrap());
    // Another goes on with it, and the first one is told at its next step.
    let resume =
        async || Window::<Agent, _>::resume_async(open(&options).await, Episode::new("e", "p"), ByteEstimate).await;
    let mut second = resume().await.unwrap();
    first.lanes().work.push("mine").unwrap();
    let superseded = first.lanes().externalize().await.map(drop);
    assert!(matches!(superseded, Err(CommitError::Superseded { expected: 2, .. })), "{superseded:?}");
    second.lanes().work.push("theirs").unwrap();
    drop(second.lanes().externalize().await.unwrap());
    // Of many that go on at once, whoever was not the last is told, now or at the next step, and no record is lost.
    let mut owners = 0;
    for resumed in futures_util::future::join_all((0..6).map(|_| resume())).await {
        let Ok(mut window) = resumed.map_err(|error| {
            assert!(matches!(error, ResumeError::Commit(CommitError::Superseded { .. })), "{error:?}");
        }) else {
            continue;
        };
        window.lanes().work.push("more").unwrap();
        owners += u32::from(window.lanes().externalize().await.is_ok());
    }
    assert_eq!(owners, 1);
    let store = tokio::task::spawn_blocking(move || Blocking::connect(options).unwrap()).await.unwrap();
    tokio::task::spawn_blocking(move || {
        let history = History::read(&store, &EpisodeId::new("e")).unwrap();
        let spans: Vec<_> = history.spans().collect();
        assert_eq!(spans.len(), 3, "a diff, theirs, more");
    })
    .await
    .unwrap();
}

type Shared = Window<Agent, PostgresStore>;

fn episode() -> Episode {
    Episode::new("e", "p").budget(Limits::of(24_000).index(600).rationale(400).margin(600))
}

async fn resumed(options: &Options) -> Shared {
    Window::resume_async(open(options).await, episode(), OneByteAToken).await.unwrap()
}

/// A message of 500 tokens.
async fn say(window: &mut Shared, n: u32) -> SpanId {
    let text = format!("{:<500}", format!("m{n}"));
    let id = window.lanes().work.push(NewSpan::tool("read", text)).unwrap();
    drop(window.lanes().externalize().await.unwrap());
    id
}

/// What the model is shown, in words.
fn shown(window: &Shared) -> Vec<String> {
    window.render().iter().map(|message| format!("{message:?}")).collect()
}

/// B097, B098: the read, the decision of a model and the write are three steps, and another process went on between them:
/// once with one message more, once with as many gone as came. What was decided by the old state is refused, whole.
#[tokio::test(flavor = "multi_thread")]
async fn what_another_process_appended_while_a_model_decided_stays() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    for (gone, come) in [(0, 1), (2, 2)] {
        let options = fresh(&address).await;
        let mut first = Shared::open_async(open(&options).await, episode(), OneByteAToken).await.unwrap();
        let mut ids = Vec::new();
        for n in 1..=20 {
            ids.push(say(&mut first, n).await);
        }
        let pass = first.lanes().externalize().await.unwrap().admit().map_err(|refusal| refusal.into_reason()).unwrap();
        let proposal = pass.parse(&Answer::prune(ids[..15].iter().map(ToString::to_string))).unwrap();

        let mut second = resumed(&options).await;
        if gone > 0 {
            drop(second.lanes().externalize().await.unwrap().work.evict(&ids[20 - gone..]).await.unwrap());
        }
        for n in 0..come {
            say(&mut second, 21 + n).await;
        }
        let refused = pass.apply(proposal).await.map(drop).unwrap_err();
        assert!(matches!(refused, ApplyError::Commit(CommitError::Superseded { .. })), "{refused:?}");
        let left = shown(&second);
        drop(second);
        let third = resumed(&options).await;
        assert_eq!(shown(&third), left);
        for n in 1..=20 + come {
            let there = left.iter().any(|message| message.contains(&format!("m{n} ")));
            assert_eq!(there, !(21 - gone as u32..=20).contains(&n), "m{n}");
        }
    }
}
