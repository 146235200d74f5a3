//! Random programs of attempts, against a model; and a store that fails at any call of them (rules R17, R19).

use std::{
    cell::Cell,
    collections::BTreeSet,
    error::Error,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
};

use keepspan::{
    CommitError, Digest, Episode, EpisodeId, Failure, NewSpan, Override, Permission, Permit, Recovered, SpanId, Window,
    action::{AcceptLossy, PermitError, RunError, Settlement, Withheld},
    store::{Batch, MemoryStore, Store, StoreError},
};
use keepspan_tests::{
    Agent, Fault, Faulty,
    acts::{Send, Write, prepare, ready},
    memory,
};
use proptest::prelude::*;

type Outcome = Result<(), Box<dyn Error>>;

/// One more try of an action that is to be done once, whatever the store does; true where it is known to be done.
fn one_try(window: &mut Window<Agent, Arc<Faulty>>, action: &Write, runs: &Cell<u32>) -> bool {
    let run = |permit: Permit<'_, Write, _>| {
        let before = runs.get();
        assert_eq!(before, 0, "a permit although it was done");
        let ran = permit.run(|_| {
            runs.set(runs.get() + 1);
            Ok::<_, Failure>("written")
        });
        match ran {
            Ok(done) => assert_eq!((done.text(), runs.get()), (Some("written"), 1)),
            Err(RunError::Commit(_) | RunError::Taken { .. }) => assert_eq!(runs.get(), before),
            Err(RunError::Unrecorded { content, .. }) => {
                assert_eq!((content.as_text(), runs.get()), (Some("written"), 1))
            }
            Err(error) => panic!("{error:?}"),
        }
    };
    match window.permit(action) {
        Ok(Permission::Fresh(permit)) => run(permit),
        // The store gave a text that was damaged, once.
        Ok(Permission::Denied(denied)) => {
            let accept = AcceptLossy::because("it is whole again").unwrap();
            run(denied.accept_lossy(accept).unwrap());
        }
        Ok(Permission::Uncertain(attempt)) => {
            let truth = match runs.get() {
                0 => Settlement::not_done("looked"),
                _ => Settlement::done("written", "looked"),
            };
            // It may fail as well.
            let _ = attempt.settle(truth.unwrap()).wait();
        }
        Ok(Permission::Done(done)) => {
            assert_eq!((done.text(), runs.get()), (Some("written"), 1));
            return true;
        }
        Err(PermitError::Commit(CommitError::Interrupted { .. })) => {
            let _ = window.recover();
        }
        Err(PermitError::Store(_)) => {}
        other => panic!("{other:?}"),
    }
    false
}

#[test]
fn whichever_calls_of_a_store_fail_it_runs_once() -> Outcome {
    let faults =
        [Fault::Fails, Fault::Unacknowledged, Fault::BitFlip, Fault::ShortRead, Fault::OutOfSpace, Fault::Damaged];
    let mut tries = BTreeSet::new();
    for (first, second) in faults.iter().flat_map(|first| faults.map(|second| (*first, second))) {
        for (nth, then) in (1..9).flat_map(|nth| (1..9).map(move |then| (nth, then))) {
            let store = Arc::new(Faulty::default());
            let (mut window, _) = ready(store.clone(), "e")?;
            let (mut other, _) = ready(store.clone(), "other")?;
            let (action, runs) = (Write::to("a"), Cell::new(0));
            store.arm(nth, first);
            let mut tried = 0;
            let known = (0..12).any(|number| {
                if number == 1 {
                    store.arm(then, second);
                }
                if number == 6 {
                    store.arm(0, first);
                }
                tried = number;
                // Whoever asks.
                let window = if number % 3 == 2 { &mut other } else { &mut window };
                one_try(window, &action, &runs)
            });
            assert!(known, "{first:?} at {nth}, {second:?} at {then}");
            tries.insert(tried);
            store.arm(0, first);
            drop(window);
            let mut window = Window::<Agent, _>::resume(store, Episode::new("e", "p"))?;
            assert!(one_try(&mut window, &action, &runs), "{first:?} at {nth}, {second:?} at {then}");
        }
    }
    assert!(tries.len() > 3, "{tries:?}");
    Ok(())
}

/// An effect that failed, whichever call of the store fails beside it: what may have taken effect is never fresh, and what took
/// none is fresh only after somebody said so.
#[test]
fn a_failure_that_is_not_recorded_is_uncertain() -> Outcome {
    let mut seen = BTreeSet::new();
    for fault in [Fault::Fails, Fault::Unacknowledged, Fault::BitFlip, Fault::ShortRead, Fault::OutOfSpace] {
        for (nth, unknown) in (1..9).flat_map(|nth| [(nth, false), (nth, true)]) {
            let store = Arc::new(Faulty::default());
            let (mut window, _) = ready(store.clone(), "e")?;
            let (action, runs) = (Write::to("a"), Cell::new(0));
            store.arm(nth, fault);
            let Ok(Permission::Fresh(permit)) = window.permit(&action) else { continue };
            let ran = permit.run(|_| {
                runs.set(runs.get() + 1);
                Err::<String, _>(if unknown { Failure::unknown("perhaps") } else { Failure::without_effect("no") })
            });
            store.arm(0, fault);
            window.recover()?;
            let says = match (window.permit(&action)?, &ran) {
                (Permission::Fresh(_), Err(RunError::Commit(_))) if runs.get() == 0 => "fresh",
                (
                    Permission::Failed(_),
                    Err(RunError::Failed { .. } | RunError::Uncertain { unrecorded: Some(_), .. }),
                ) if !unknown => "failed",
                (Permission::Uncertain(_), Err(RunError::Uncertain { unrecorded, .. })) => {
                    // That a failure without effect is uncertain is for want of a record alone.
                    assert!(unknown || unrecorded.is_some());
                    "uncertain"
                }
                (Permission::Uncertain(_), Err(RunError::Commit(_))) if runs.get() == 0 => "not run",
                (answer, ran) => panic!("{fault:?} at {nth}: {answer:?} after {ran:?}"),
            };
            seen.insert(says);
        }
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["failed", "fresh", "not run", "uncertain"]);
    Ok(())
}

/// A store whose next commit gets no answer.
#[derive(Default)]
struct Unanswered {
    inner: MemoryStore,
    /// How many commits are answered before, and whether that one lands.
    next: AtomicU8,
    lands: bool,
}

const NEVER: u8 = u8::MAX;

impl Store for Unanswered {
    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        let left = self.next.load(Ordering::SeqCst);
        if left != NEVER {
            self.next.store(left.checked_sub(1).unwrap_or(NEVER), Ordering::SeqCst);
        }
        match (left, self.lands) {
            (0, true) => self.inner.commit(batch).and(Err(StoreError::Unacknowledged)),
            (0, false) => Err(StoreError::Unacknowledged),
            _ => self.inner.commit(batch),
        }
    }

    fn get(&self, digest: &Digest) -> Result<Vec<u8>, StoreError> {
        self.inner.get(digest)
    }

    fn read(&self, episode: &EpisodeId, from: u64, most: u64) -> Result<Vec<Vec<u8>>, StoreError> {
        self.inner.read(episode, from, most)
    }

    fn length(&self, episode: &EpisodeId) -> Result<u64, StoreError> {
        self.inner.length(episode)
    }

    fn holders(&self, signatures: &[Digest]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.inner.holders(signatures)
    }
}

#[test]
fn a_lost_answer_is_settled_by_asking_the_store() -> Outcome {
    for (at, lands) in [(0, true), (0, false), (1, true), (1, false)] {
        let store = Arc::new(Unanswered { next: NEVER.into(), lands, ..Unanswered::default() });
        let (mut window, spans) = ready(store.clone(), "e")?;
        let evidence = window.lanes().target.cite(spans.target)?;
        let (action, runs) = (Send { text: "mail".to_owned() }, Cell::new(0));
        let send = |permit: Permit<'_, Send, _>, consent| {
            permit.justified_by(&evidence).unwrap().consented_by(consent).unwrap().run(|_| {
                runs.set(runs.get() + 1);
                Ok::<_, Failure>("sent")
            })
        };
        let consent = window.lanes().rules.consent(spans.yes)?;
        let permit = window.permit(&action)?.fresh()?;
        store.next.store(at, Ordering::SeqCst);
        let error = send(permit, consent).err().ok_or("it answered")?;
        match at {
            0 => {
                assert!(matches!(error, RunError::Commit(CommitError::Store(StoreError::Unacknowledged))), "{error:?}")
            }
            _ => assert!(matches!(error, RunError::Unrecorded { .. }), "{error:?}"),
        }
        assert_eq!(runs.get(), u32::from(at));
        let told = error.to_string();
        assert_eq!(told.contains("did not run") || !told.contains("Window::recover"), at == 0, "{told}");
        // Before that, the window says nothing; another one says what the store knows.
        let doubt = window.permit(&action).err().ok_or("no doubt")?;
        assert!(matches!(doubt, PermitError::Commit(CommitError::Interrupted { .. })), "{doubt:?}");
        assert_eq!(matches!(window.recover()?, Recovered::Written { .. }), lands);
        let consent = window.lanes().rules.consent(spans.yes)?;
        match (window.permit(&action)?, at, lands) {
            // The intent is not on record, and the consent not spent.
            (Permission::Fresh(permit), 0, false) => {
                assert_eq!(permit.attempt(), 1);
                send(permit, consent)?;
                assert_eq!(runs.get(), 1);
            }
            (Permission::Done(done), 1, true) => assert_eq!(done.text(), Some("sent")),
            (Permission::Uncertain(attempt), 0, true) | (Permission::Uncertain(attempt), 1, false) => {
                assert_eq!((attempt.number(), attempt.episode().as_str()), (1, "e"));
            }
            (other, ..) => panic!("{at} {lands}: {other:?}"),
        }
    }
    Ok(())
}

/// One move of a random program, in one of three windows.
#[derive(Clone, Debug)]
enum Move {
    /// Into `schema` or `target`, one of a few texts, so that the same is observed again.
    Push(bool, u8),
    Evict(bool),
    Restore(bool),
    /// The window ends, and is resumed.
    Resume,
    Act {
        request: u8,
        ends: Ends,
        over: bool,
    },
    Settle {
        request: u8,
        done: bool,
    },
    Note {
        request: u8,
        refused: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    Ok,
    WithoutEffect,
    Refused,
    Unknown,
    Panics,
}

fn moves() -> impl Strategy<Value = Vec<(usize, Move)>> {
    let ends = prop_oneof![
        3 => Just(Ends::Ok),
        2 => Just(Ends::WithoutEffect),
        1 => Just(Ends::Refused),
        1 => Just(Ends::Unknown),
        1 => Just(Ends::Panics),
    ];
    let one = prop_oneof![
        3 => (any::<bool>(), 0..3_u8).prop_map(|(schema, text)| Move::Push(schema, text)),
        1 => any::<bool>().prop_map(Move::Evict),
        2 => any::<bool>().prop_map(Move::Restore),
        1 => Just(Move::Resume),
        8 => (0..3_u8, ends, any::<bool>()).prop_map(|(request, ends, over)| Move::Act { request, ends, over }),
        2 => (0..3_u8, any::<bool>()).prop_map(|(request, done)| Move::Settle { request, done }),
        1 => (0..3_u8, any::<bool>()).prop_map(|(request, refused)| Move::Note { request, refused }),
    ];
    prop::collection::vec((0..3_usize, one), 1..60)
}

/// What a window holds of the two lanes: each span with its text, and whether it is in the window.
#[derive(Clone, Debug, Default)]
struct Lane(Vec<(SpanId, u8, bool)>);

impl Lane {
    fn texts(&self) -> BTreeSet<u8> {
        self.0.iter().map(|(_, text, _)| *text).collect()
    }

    fn away(&self) -> Vec<SpanId> {
        self.0.iter().filter(|(.., resident)| !resident).map(|(span, ..)| *span).collect()
    }
}

/// What an attempt came to, for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Came {
    Open,
    Done(String),
    /// With what the lanes held then; none where it was refused.
    Failed(Option<[BTreeSet<u8>; 2]>),
    NotDone,
}

/// What a window should say.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Says {
    Fresh(u64),
    Done(u64, String),
    Failed(u64),
    Uncertain(u64),
    Denied(Vec<SpanId>, Vec<&'static str>),
}

/// The model: the attempts of each request, whatever window made them.
#[derive(Debug, Default)]
struct Model {
    attempts: [Vec<Came>; 3],
    runs: [u32; 3],
}

fn numbered(attempts: &[Came]) -> impl Iterator<Item = (u64, &Came)> {
    (1..).zip(attempts).collect::<Vec<_>>().into_iter().rev()
}

impl Model {
    fn says(&self, request: usize, lanes: &[Lane; 2]) -> Says {
        let attempts = &self.attempts[request];
        for (number, came) in numbered(attempts) {
            match came {
                Came::Open => return Says::Uncertain(number),
                Came::Done(text) => return Says::Done(number, text.clone()),
                Came::Failed(_) | Came::NotDone => {}
            }
        }
        if let Some(Came::Failed(under)) = attempts.last() {
            let now = [lanes[0].texts(), lanes[1].texts()];
            if under.as_ref().is_none_or(|under| *under == now) {
                return Says::Failed(attempts.len() as u64);
            }
        }
        self.may(request, lanes)
    }

    fn may(&self, request: usize, lanes: &[Lane; 2]) -> Says {
        let away: Vec<_> = lanes.iter().flat_map(Lane::away).collect();
        let names = ["schema", "target"].into_iter().zip(lanes);
        let empty: Vec<_> = names.filter(|(_, lane)| lane.0.is_empty()).map(|(name, _)| name).collect();
        if away.is_empty() && empty.is_empty() {
            return Says::Fresh(self.attempts[request].len() as u64 + 1);
        }
        Says::Denied(away, empty)
    }
}

type Windowed = Window<Agent, Arc<MemoryStore>>;

fn said(answer: &Permission<'_, Write, Arc<MemoryStore>>) -> Says {
    match answer {
        Permission::Fresh(permit) => Says::Fresh(permit.attempt()),
        Permission::Done(done) => Says::Done(done.attempt().number(), done.text().unwrap_or_default().to_owned()),
        Permission::Failed(failed) => Says::Failed(failed.attempt().number()),
        Permission::Uncertain(attempt) => Says::Uncertain(attempt.number()),
        Permission::Denied(denied) => Says::Denied(denied.evicted().to_vec(), denied.empty().to_vec()),
    }
}

/// The permit, by an override where `over` says so.
fn permitted<'w>(
    answer: Permission<'w, Write, Arc<MemoryStore>>,
    over: bool,
) -> Option<Result<Permit<'w, Write, Arc<MemoryStore>>, Says>> {
    let because = || Override::because("wanted").unwrap();
    let denied = |withheld: Withheld<'w, Write, Arc<MemoryStore>, keepspan::action::Denial>| {
        Says::Denied(withheld.evicted().to_vec(), withheld.empty().to_vec())
    };
    match answer {
        Permission::Fresh(permit) => Some(Ok(permit)),
        Permission::Done(done) if over => Some(done.repeat(because()).map_err(denied)),
        Permission::Failed(failed) if over => Some(failed.repeat(because()).map_err(denied)),
        Permission::Uncertain(attempt) if over => Some(attempt.repeat(because()).map_err(denied)),
        _ => None,
    }
}

fn act(
    window: &mut Windowed,
    lanes: &[Lane; 2],
    model: &mut Model,
    (request, ends, over): (u8, Ends, bool),
) -> Result<(), TestCaseError> {
    let at = usize::from(request);
    let action = Write::to(request.to_string());
    let answer = window.permit(&action).unwrap();
    let says = model.says(at, lanes);
    prop_assert_eq!(said(&answer), says.clone());
    let permit = match permitted(answer, over) {
        None => return Ok(()),
        Some(permit) => match (permit, model.may(at, lanes)) {
            (Ok(permit), Says::Fresh(attempt)) => {
                prop_assert_eq!(permit.attempt(), attempt);
                permit
            }
            (Err(said), denied) => {
                prop_assert_eq!(said, denied);
                return Ok(());
            }
            (Ok(permit), denied) => return Err(TestCaseError::fail(format!("{permit:?} and {denied:?}"))),
        },
    };
    let text = format!("outcome {}", model.runs[at]);
    let mut runs = 0;
    let ran = catch_unwind(AssertUnwindSafe(|| {
        permit.run(|_| {
            runs += 1;
            match ends {
                Ends::Ok => Ok(text.clone()),
                Ends::WithoutEffect => Err(Failure::without_effect("no")),
                Ends::Refused => Err(Failure::refused("no")),
                Ends::Unknown => Err(Failure::unknown("perhaps")),
                // Without the message of one that nobody expected.
                Ends::Panics => std::panic::resume_unwind(Box::new("told to")),
            }
        })
    }));
    prop_assert_eq!(runs, 1);
    model.runs[at] += 1;
    let as_it_ended = match (&ran, ends) {
        (Ok(Ok(done)), Ends::Ok) => done.text() == Some(&text),
        (Ok(Err(RunError::Failed { .. })), Ends::WithoutEffect | Ends::Refused) => true,
        (Ok(Err(RunError::Uncertain { unrecorded: None, .. })), Ends::Unknown) => true,
        (ran, ends) => ran.is_err() && ends == Ends::Panics,
    };
    prop_assert!(as_it_ended, "{:?} {:?}", ends, ran);
    model.attempts[at].push(match ends {
        Ends::Ok => Came::Done(text),
        Ends::WithoutEffect => Came::Failed(Some([lanes[0].texts(), lanes[1].texts()])),
        Ends::Refused => Came::Failed(None),
        Ends::Unknown | Ends::Panics => Came::Open,
    });
    Ok(())
}

/// Runs one move in one window, and in the model.
fn step(
    store: &Arc<MemoryStore>,
    (at, window): (usize, &mut Windowed),
    lanes: &mut [Lane; 2],
    model: &mut Model,
    one: Move,
) -> Result<(), TestCaseError> {
    match one {
        Move::Push(schema, text) => {
            let new = NewSpan::tool("look", format!("text {text}"));
            let handles = window.lanes();
            let span = if schema { handles.schema.push(new) } else { handles.target.push(new) };
            lanes[usize::from(!schema)].0.push((span.unwrap(), text, true));
        }
        Move::Evict(schema) => {
            let Some(last) = lanes[usize::from(!schema)].0.iter_mut().rev().find(|(.., resident)| *resident) else {
                return Ok(());
            };
            let handles = window.lanes().externalize().wait().unwrap();
            if schema { handles.schema.evict(last.0).wait() } else { handles.target.evict(last.0).wait() }.unwrap();
            last.2 = false;
        }
        Move::Restore(by_denial) => {
            let away: Vec<_> = lanes.iter().flat_map(Lane::away).collect();
            if away.is_empty() {
                return Ok(());
            }
            let action = Write::to("never attempted");
            match window.permit(&action).unwrap() {
                Permission::Denied(denied) if by_denial => {
                    let mut back = denied.bring_back().wait().unwrap();
                    back.sort_unstable();
                    let mut away = away;
                    away.sort_unstable();
                    prop_assert_eq!(back, away);
                }
                Permission::Denied(_) => {
                    for lane in lanes.iter().map(Lane::away).enumerate().filter(|(_, away)| !away.is_empty()) {
                        let handles = window.lanes();
                        match lane {
                            (0, away) => handles.schema.restore(away).wait().unwrap(),
                            (_, away) => handles.target.restore(away).wait().unwrap(),
                        };
                    }
                }
                other => return Err(TestCaseError::fail(format!("{other:?}"))),
            }
            lanes.iter_mut().flat_map(|lane| &mut lane.0).for_each(|(.., resident)| *resident = true);
        }
        Move::Resume => {
            drop(window.lanes().externalize().wait().unwrap());
            *window = Window::resume(store.clone(), Episode::new(format!("e{at}"), "p")).unwrap();
        }
        Move::Act { request, ends, over } => act(window, lanes, model, (request, ends, over))?,
        Move::Settle { request, done } => {
            let action = Write::to(request.to_string());
            let says = model.says(usize::from(request), lanes);
            if let (Permission::Uncertain(attempt), Says::Uncertain(number)) = (window.permit(&action).unwrap(), says) {
                let settlement =
                    if done { Settlement::done("settled", "looked") } else { Settlement::not_done("looked") };
                attempt.settle(settlement.unwrap()).wait().unwrap();
                let at = usize::try_from(number).unwrap() - 1;
                model.attempts[usize::from(request)][at] =
                    if done { Came::Done("settled".to_owned()) } else { Came::NotDone };
            }
        }
        Move::Note { request, refused } => {
            let action = Write::to(request.to_string());
            let failure = if refused { Failure::refused("no") } else { Failure::without_effect("no") };
            let noted = window.note_failure(&action, failure);
            let says = model.says(usize::from(request), lanes);
            let (open, done) = (matches!(says, Says::Uncertain(_)), matches!(says, Says::Done(..)));
            prop_assert_eq!(matches!(noted, Err(PermitError::Unsettled(_))), open);
            prop_assert_eq!(matches!(noted, Err(PermitError::Done(_))), done);
            if !open && !done {
                noted.unwrap();
                let under = (!refused).then(|| [lanes[0].texts(), lanes[1].texts()]);
                model.attempts[usize::from(request)].push(Came::Failed(under));
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_answer_is_that_of_a_model(moves in moves()) {
        let store = memory();
        let mut windows: Vec<Windowed> = (0..3)
            .map(|at| Window::open(store.clone(), Episode::new(format!("e{at}"), "p")).unwrap())
            .collect();
        let mut lanes: Vec<[Lane; 2]> = vec![Default::default(); 3];
        let mut model = Model::default();
        for (at, one) in moves {
            step(&store, (at, &mut windows[at]), &mut lanes[at], &mut model, one)?;
            // Every window says of every request what the model does, whoever attempted it.
            for (window, lanes) in windows.iter_mut().zip(&lanes) {
                for request in 0..3 {
                    let action = Write::to(request.to_string());
                    prop_assert_eq!(said(&window.permit(&action).unwrap()), model.says(request, lanes));
                }
            }
        }
        // What runs was counted by its attempts: none was lost, none made up.
        for request in 0..3 {
            let done = model.attempts[request].iter().filter(|came| matches!(came, Came::Done(text) if text != "settled"));
            prop_assert!(done.count() <= model.runs[request] as usize);
        }
        let mut last = Window::<Agent, _>::open(store, Episode::new("last", "p")).unwrap();
        prepare(&mut last).unwrap();
        for request in 0..3 {
            let is_fresh = matches!(last.permit(&Write::to(request.to_string())).unwrap(), Permission::Fresh(_));
            let has_effect = model.attempts[request].iter().any(|came| matches!(came, Came::Open | Came::Done(_)));
            prop_assert!(!(is_fresh && has_effect));
        }
    }
}
