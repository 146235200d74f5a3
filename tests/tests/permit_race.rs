//! Many attempt the same at once: one does it, whatever thread or future it is in (rule R19).

use std::{
    cell::Cell,
    error::Error,
    future::Future,
    pin::{Pin, pin},
    sync::{
        Arc, Barrier,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    thread,
};

use futures_lite::future::{block_on, yield_now};
use keepspan::{
    Failure, Override, Permission, Recovered, Window,
    action::{RunError, Settlement, Tried},
    store::{EmbeddedStore, MemoryStore, Store},
};
use keepspan_tests::{
    Agent, Delay,
    acts::{Write, prepare, ready},
};

type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;
type Windowed<S> = Window<Agent, Arc<S>>;

const THREADS: u64 = 64;

/// What became of one of many attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Became {
    Ran,
    Taken,
    Done,
    Uncertain,
}

/// Asks, waits for the others where `all` says so, and runs where it may.
fn attempt<S: Store>(
    window: &mut Windowed<S>,
    action: &Write,
    name: u64,
    runs: &AtomicU64,
    all: Option<&Barrier>,
) -> Became {
    let answer = window.permit(action).unwrap();
    if let Some(all) = all {
        all.wait();
    }
    let permit = match answer {
        Permission::Fresh(permit) => permit,
        Permission::Done(_) => return Became::Done,
        Permission::Uncertain(_) => return Became::Uncertain,
        other => panic!("{other:?}"),
    };
    ran(permit.run(|_| {
        runs.fetch_add(1, Ordering::SeqCst);
        Ok::<_, Failure>(format!("by {name}"))
    }))
}

fn ran<T>(result: Result<T, RunError>) -> Became {
    match result {
        Ok(_) => Became::Ran,
        Err(RunError::Taken { action: "write" }) => Became::Taken,
        Err(error) => panic!("{error:?}"),
    }
}

/// Runs `each` in one thread for each window.
fn together<S: Store>(
    windows: &mut [Windowed<S>],
    each: impl Fn(u64, &mut Windowed<S>) -> Became + Sync,
) -> Vec<Became> {
    thread::scope(|scope| {
        let each = &each;
        let threads: Vec<_> =
            (0..).zip(windows).map(|(name, window)| scope.spawn(move || each(name, window))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn count(became: &[Became], wanted: Became) -> usize {
    became.iter().filter(|became| **became == wanted).count()
}

/// The outcome that every window is told, which is the same for all.
fn outcome<S: Store>(windows: &mut [Windowed<S>], action: &Write, attempt: u64) -> String {
    let mut outcomes: Vec<_> = windows
        .iter_mut()
        .map(|window| match window.permit(action).unwrap() {
            Permission::Done(done) => {
                assert_eq!(done.attempt().number(), attempt);
                (done.text().unwrap().to_owned(), done.attempt().episode().clone())
            }
            other => panic!("{other:?}"),
        })
        .collect();
    outcomes.dedup();
    assert_eq!(outcomes.len(), 1, "{outcomes:?}");
    outcomes.remove(0).0
}

fn race<S: Store + 'static>(store: &Arc<S>, rounds: u64) {
    let mut windows: Vec<_> = (0..THREADS).map(|name| ready(store.clone(), &format!("e{name}")).unwrap().0).collect();
    let mut overlapped = 0;
    for round in 0..rounds {
        let action = Write::to(format!("{round}"));
        let runs = AtomicU64::new(0);
        let all = Barrier::new(windows.len());
        // Everybody holds a permit before anybody runs, and everybody comes as it likes.
        let at_once = (round % 2 == 0).then_some(&all);
        let became = together(&mut windows, |name, window| attempt(window, &action, name, &runs, at_once));
        assert_eq!((count(&became, Became::Ran), runs.load(Ordering::SeqCst)), (1, 1));
        if at_once.is_some() {
            assert_eq!(count(&became, Became::Taken), windows.len() - 1);
        }
        overlapped += count(&became, Became::Taken) + count(&became, Became::Uncertain);
        let first = outcome(&mut windows, &action, 1);

        let became = together(&mut windows, |name, window| {
            let Permission::Done(done) = window.permit(&action).unwrap() else { panic!("it was done") };
            let permit = done.repeat(Override::because("twice is wanted").unwrap()).unwrap();
            assert_eq!(permit.attempt(), 2);
            all.wait();
            ran(permit.run(|_| {
                runs.fetch_add(1, Ordering::SeqCst);
                Ok::<_, Failure>(format!("again by {name}"))
            }))
        });
        assert_eq!((count(&became, Became::Ran), count(&became, Became::Taken)), (1, windows.len() - 1));
        assert_eq!(runs.load(Ordering::SeqCst), 2);
        assert_ne!(outcome(&mut windows, &action, 2), first);
    }
    assert!(overlapped > 0, "nobody came second");
}

#[test]
fn of_64_threads_one_runs_it_in_memory() {
    race(&Arc::new(MemoryStore::new()), 30);
}

#[test]
fn of_64_threads_one_runs_it_on_a_file() {
    let folder = tempfile::tempdir().unwrap();
    race(&Arc::new(EmbeddedStore::open(&folder.path().join("store")).unwrap()), 4);
}

/// Polls a future so often at most; none where it did not end.
fn polled<F: Future>(future: F, times: usize) -> Option<F::Output> {
    let mut future = pin!(future);
    (0..times).find_map(|_| match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    })
}

#[test]
fn a_future_that_is_dropped_anywhere_never_leaves_a_done_action_fresh() -> Outcome {
    // By what was seen after the drop: whether it had run, and whether it is fresh, uncertain or done.
    let mut seen = std::collections::BTreeMap::<(u32, &str), u32>::new();
    for (before, after) in [(0, 0), (2, 0), (0, 2), (2, 2)] {
        for times in 0_usize.. {
            let inner = Arc::new(MemoryStore::new());
            let store = Delay { inner: inner.clone(), before, after };
            let mut window = block_on(Window::<Agent, _>::open_async(
                store,
                keepspan::Episode::new("e", "p"),
                keepspan::ByteEstimate,
            ))?;
            window.lanes().schema.push("users.id BIGINT")?;
            window.lanes().target.push("staging")?;
            let (action, runs) = (Write::to("a"), Cell::new(0));
            let effect = async |_: keepspan::Granted<'_, Write>| {
                yield_now().await;
                runs.set(runs.get() + 1);
                yield_now().await;
                Ok::<_, Failure>("written")
            };
            let Permission::Fresh(permit) = block_on(window.permit_async(&action))? else { panic!() };
            let ended = polled(permit.run_async(effect), times);
            // The window itself says nothing before it is known what became of the commit.
            let doubted = block_on(window.permit_async(&action)).is_err();
            let recovered = block_on(window.recover_async())?;
            assert!(doubted || recovered == Recovered::NotWritten);
            let state = match block_on(window.permit_async(&action))? {
                Permission::Fresh(_) => "fresh",
                Permission::Done(done) => {
                    assert_eq!(done.text(), Some("written"));
                    "done"
                }
                Permission::Uncertain(attempt) => {
                    let settlement = match runs.get() {
                        0 => Settlement::not_done("looked")?,
                        _ => Settlement::done("written", "looked")?,
                    };
                    block_on(attempt.settle(settlement).into_future())?;
                    "uncertain"
                }
                other => panic!("{other:?}"),
            };
            *seen.entry((runs.get(), state)).or_default() += 1;
            // Another window goes on, and in the end it ran once.
            let mut other = block_on(Window::<Agent, _>::open_async(
                Delay { inner, before, after },
                keepspan::Episode::new("other", "p"),
                keepspan::ByteEstimate,
            ))?;
            other.lanes().schema.push("users.id BIGINT")?;
            other.lanes().target.push("staging")?;
            match block_on(other.permit_async(&action))? {
                Permission::Fresh(permit) => drop(block_on(permit.run_async(effect))?),
                Permission::Done(done) => assert_eq!(done.text(), Some("written")),
                other => panic!("{other:?}"),
            }
            assert_eq!(runs.get(), 1, "dropped after {times} polls");
            if let Some(ended) = ended {
                assert!(ended.is_ok());
                break;
            }
        }
    }
    let seen: Vec<_> = seen.into_keys().collect();
    assert_eq!(seen, [(0, "fresh"), (0, "uncertain"), (1, "done"), (1, "uncertain")]);
    Ok(())
}

#[test]
fn of_many_futures_of_one_thread_one_runs_it() -> Outcome {
    for (before, after) in [(0, 0), (1, 0), (0, 1), (3, 2)] {
        let inner = Arc::new(MemoryStore::new());
        let (action, runs) = (Write::to("a"), Cell::new(0));
        let one = async |name: u32| -> Outcome<Became> {
            let store = Delay { inner: inner.clone(), before: before + name % 3, after };
            let episode = keepspan::Episode::new(format!("e{name}"), "p");
            let mut window = Window::<Agent, _>::open_async(store, episode, keepspan::ByteEstimate).await?;
            window.lanes().schema.push("users.id BIGINT")?;
            window.lanes().target.push("staging")?;
            Ok(match window.permit_async(&action).await? {
                Permission::Fresh(permit) => {
                    let effect = async |_: keepspan::Granted<'_, Write>| {
                        runs.set(runs.get() + 1);
                        yield_now().await;
                        Ok::<_, Failure>("written")
                    };
                    ran(permit.run_async(effect).await)
                }
                Permission::Uncertain(_) => Became::Uncertain,
                Permission::Done(_) => Became::Done,
                other => panic!("{other:?}"),
            })
        };
        let one = &one;
        let mut futures: Vec<Pin<Box<dyn Future<Output = Outcome<Became>> + '_>>> =
            (0..16).map(|name| Box::pin(one(name)) as _).collect();
        let mut ended = Vec::new();
        while !futures.is_empty() {
            futures.retain_mut(|future| match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(became) => {
                    ended.push(became.unwrap());
                    false
                }
                Poll::Pending => true,
            });
        }
        assert_eq!((runs.get(), count(&ended, Became::Ran)), (1, 1), "{ended:?}");
        let mut window = Window::<Agent, _>::open(inner.clone(), keepspan::Episode::new("last", "p"))?;
        prepare(&mut window).map_err(|error| error.to_string())?;
        assert!(matches!(window.tried(keepspan::Action::signature(&action))?, Tried::Done(_)));
    }
    Ok(())
}
