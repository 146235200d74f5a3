//! A store that fails at any call leaves the window as it was, and nothing that left it is lost.

use std::{
    future::{Future, IntoFuture},
    pin::pin,
    sync::Arc,
    task::{Context, Waker},
};

use keepspan::{
    CommitError, Content, Digest, Episode, EpisodeId, EvictError, Fidelity, Finish, ModelAnswer, RecallError,
    Recovered, Shown, SpanId, Window,
    store::{AsyncStore, Batch, MemoryStore, Store, StoreError},
};
use keepspan_tests::{Agent, Fault, Faulty, Seen};
use proptest::prelude::*;

type Outcome = Result<(), Box<dyn std::error::Error>>;
type Windowed = Window<Agent, Arc<Faulty>>;

/// One move of a random program.
#[derive(Clone, Debug)]
enum Move {
    Push(u8, u16),
    Evict(u8, Vec<u8>),
    Restore(u8),
    Summarize(Vec<u8>),
    Reground(u8),
    Arm(u8, u8),
    /// The store is asked what became of a commit whose answer was lost.
    Recover,
    /// The process commits what it has and stops, and another goes on.
    Stop,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        4 => (0..3_u8, 1..600_u16).prop_map(|(lane, size)| Move::Push(lane, size)),
        3 => (0..3_u8, prop::collection::vec(0..40_u8, 1..4)).prop_map(|(lane, ids)| Move::Evict(lane, ids)),
        2 => (0..40_u8).prop_map(Move::Restore),
        2 => prop::collection::vec(0..40_u8, 1..4).prop_map(Move::Summarize),
        1 => (0..40_u8).prop_map(Move::Reground),
        2 => (1..5_u8, 0..6_u8).prop_map(|(nth, fault)| Move::Arm(nth, fault)),
        2 => Just(Move::Recover),
        1 => Just(Move::Stop),
    ];
    prop::collection::vec(one, 1..60)
}

/// Runs one move; an error is an outcome like any other.
fn step(
    window: &mut Windowed,
    store: &Arc<Faulty>,
    texts: &mut Vec<(SpanId, String)>,
    one: Move,
) -> Result<(), TestCaseError> {
    let span = |at: u8| texts.get(usize::from(at)).map(|(span, _)| *span);
    match one {
        Move::Push(lane, size) => {
            let text = format!("{} {}", texts.len(), "t".repeat(usize::from(size)));
            let lanes = window.lanes();
            let pushed = match lane {
                0 => lanes.schema.push(text.as_str()),
                1 => lanes.failed.push(text.as_str()),
                _ => lanes.work.push(text.as_str()),
            };
            texts.extend(pushed.map(|span| (span, text)));
        }
        Move::Evict(lane, ids) => {
            let ids: Vec<_> = ids.into_iter().filter_map(span).collect();
            let Ok(lanes) = window.lanes().externalize().wait() else { return Ok(()) };
            let _ = match lane {
                0 => lanes.schema.evict(ids).wait(),
                1 => lanes.failed.evict(ids).wait(),
                _ => lanes.work.evict(ids).wait(),
            };
        }
        Move::Restore(at) => {
            let lanes = window.lanes();
            if let Some(span) = span(at) {
                let _ = lanes.schema.restore(span).wait();
                let _ = lanes.work.restore(span).wait();
            }
        }
        Move::Summarize(ids) => {
            let ids: Vec<_> = ids.into_iter().filter_map(span).collect();
            let Ok(lanes) = window.lanes().externalize().wait() else { return Ok(()) };
            let Ok(text) = ModelAnswer::new(Finish::Stop, "short").try_into() else { return Ok(()) };
            let _ = lanes.work.summarize(ids, text, &lanes.recap).wait();
        }
        Move::Reground(at) => {
            let lanes = window.lanes();
            let summaries = [lanes.recap.resident(), lanes.recap.evicted()].concat();
            if let Some(summary) = summaries.get(usize::from(at) % summaries.len().max(1)) {
                let _ = lanes.recap.reground(*summary).wait();
            }
        }
        Move::Arm(nth, fault) => {
            let faults = [
                Fault::Fails,
                Fault::OutOfSpace,
                Fault::Unacknowledged,
                Fault::Unacknowledged,
                Fault::BitFlip,
                Fault::ShortRead,
            ];
            store.arm(u64::from(nth), faults[usize::from(fault)]);
        }
        Move::Recover => recovered(window, store, texts)?,
        Move::Stop => {
            recovered(window, store, texts)?;
            drop(window.lanes().externalize().wait().map_err(failed)?);
            let (before, lossy) = (Seen::of(window), window.fidelity() != Fidelity::Reversible);
            *window = Window::resume(store.clone(), Episode::new("e", "p")).map_err(failed)?;
            // That a read once failed is not on record.
            let but: &[&str] = if lossy { &["fidelity"] } else { &[] };
            prop_assert_eq!(before.without(but).difference(&Seen::of(window).without(but)), None);
        }
    }
    Ok(())
}

/// Nothing that was pushed is lost by asking, under whichever number.
fn recovered(window: &mut Windowed, store: &Faulty, texts: &mut [(SpanId, String)]) -> Result<(), TestCaseError> {
    store.arm(0, Fault::Fails);
    if let Recovered::Written { moved } = window.recover().map_err(failed)? {
        for (span, _) in texts {
            *span = moved.iter().find(|(old, _)| old == span).map_or(*span, |(_, new)| *new);
        }
    }
    Ok(())
}

fn failed(error: impl std::fmt::Display) -> TestCaseError {
    TestCaseError::fail(error.to_string())
}

/// The spans that what is shown stands for, ascending.
fn stands_for(window: &Windowed) -> Vec<SpanId> {
    let first_hand =
        |span: SpanId| window.derivation(span).map_or(vec![span], |derivation| derivation.sources().to_vec());
    let ids = |shown: Shown| match shown {
        Shown::Pointer(first, last) => {
            let id = |number: u64| SpanId::parse(&format!("s{number}"));
            (first.number()..=last.number()).filter_map(id).flat_map(first_hand).collect()
        }
        Shown::Span(span) | Shown::Summary(span) => first_hand(span),
        other => panic!("{other:?}"),
    };
    let mut all: Vec<_> = window.render().iter().flat_map(|message| ids(message.shown())).collect();
    all.sort_unstable();
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Whatever happens: every text ever pushed is recalled byte for byte, and a render costs what it says.
    #[test]
    fn nothing_is_lost(program in moves()) {
        let store = Arc::new(Faulty::default());
        let opened = Window::<Agent, _>::open(store.clone(), Episode::new("e", "p"));
        let mut window = opened.map_err(|error| TestCaseError::fail(error.to_string()))?;
        let mut texts = Vec::new();
        for one in program {
            step(&mut window, &store, &mut texts, one)?;
            let rendered: u64 = window.render().iter().map(|message| u64::from(message.tokens())).sum();
            prop_assert_eq!(window.utilization(), rendered);
            let mut pushed: Vec<_> = texts.iter().map(|(span, _)| *span).collect();
            pushed.sort_unstable();
            prop_assert_eq!(stands_for(&window), pushed, "each span is shown once: as text, under a pointer or in a summary");
        }
        store.arm(0, Fault::Fails);
        for (span, text) in texts {
            let recalled = window.recall(span).wait().map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!(recalled.content().as_text(), Some(text.as_str()));
        }
    }
}

fn opened(store: &Arc<Faulty>) -> Result<(Windowed, SpanId), Box<dyn std::error::Error>> {
    let mut window = Window::<Agent, _>::open(store.clone(), Episode::new("e", "p"))?;
    let id = window.lanes().schema.push("users.id BIGINT NOT NULL")?;
    Ok((window, id))
}

#[test]
fn a_store_that_gives_other_bytes_back_mints_no_externalized_lanes() -> Outcome {
    for fault in [Fault::BitFlip, Fault::ShortRead, Fault::Fails] {
        let store = Arc::new(Faulty::default());
        let (mut window, id) = opened(&store)?;
        // The first call is the commit, the second reads back.
        store.arm(2, fault);
        assert!(window.lanes().externalize().wait().is_err(), "{fault:?}");
        assert_eq!(window.uncommitted().spans, 1);
        assert_eq!(window.render()[0].content().as_text(), Some("users.id BIGINT NOT NULL"));
        // The log goes on from where it is.
        window.lanes().externalize().wait()?.schema.evict(id).wait()?;
        assert!(window.recall(id).wait().is_ok());
    }
    Ok(())
}

#[test]
fn a_damaged_blob_is_named_and_not_returned() -> Outcome {
    let store = Arc::new(Faulty::default());
    let (mut window, id) = opened(&store)?;
    window.lanes().externalize().wait()?.schema.evict(id).wait()?;
    store.arm(1, Fault::BitFlip);
    let refused = window.recall(id).wait();
    let digest = Digest::of(b"users.id BIGINT NOT NULL");
    assert!(
        matches!(refused, Err(RecallError::Commit(CommitError::Store(StoreError::Corrupt { digest: d }))) if d == digest)
    );
    assert!(window.recall(id).wait().is_ok());
    Ok(())
}

#[test]
fn a_lost_acknowledgement_stops_the_window_and_keeps_the_text() -> Outcome {
    let store = Arc::new(Faulty::default());
    let (mut window, id) = opened(&store)?;
    let lanes = window.lanes().externalize().wait()?;
    store.arm(1, Fault::Unacknowledged);
    assert!(lanes.schema.evict(id).wait().is_err());
    let next = lanes.schema.evict(id).wait();
    assert!(matches!(next, Err(EvictError::Commit(CommitError::Interrupted { .. }))));
    drop(lanes);
    assert_eq!(window.render()[0].content().as_text(), Some("users.id BIGINT NOT NULL"));
    Ok(())
}

/// A store that answers at the second poll.
struct Slow(MemoryStore);

async fn later() {
    let mut polled = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut polled, true) {
            return std::task::Poll::Ready(());
        }
        context.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}

impl AsyncStore for Slow {
    async fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        later().await;
        Store::commit(&self.0, batch)
    }

    async fn get_many(&self, digests: &[Digest]) -> Result<Vec<Vec<u8>>, StoreError> {
        later().await;
        Store::get_many(&self.0, digests)
    }

    async fn read(&self, episode: &EpisodeId, from: u64, most: u64) -> Result<Vec<Vec<u8>>, StoreError> {
        later().await;
        Store::read(&self.0, episode, from, most)
    }

    async fn length(&self, episode: &EpisodeId) -> Result<u64, StoreError> {
        later().await;
        Store::length(&self.0, episode)
    }

    async fn holders(&self, signatures: &[Digest]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        Store::holders(&self.0, signatures)
    }
}

fn is_send<T: Send>(value: T) -> T {
    value
}

#[test]
fn the_same_path_on_an_async_store() -> Outcome {
    futures_lite::future::block_on(is_send(async {
        let slow = Slow(MemoryStore::default());
        let mut window = Window::<Agent, _>::open_async(slow, Episode::new("e", "p"), keepspan::ByteEstimate).await?;
        let lanes = window.lanes();
        let id = lanes.schema.push("users.id BIGINT NOT NULL")?;
        let lanes = lanes.externalize().await?;
        lanes.schema.evict(id).await?;
        let recalled = lanes.schema.restore(id).await?;
        assert_eq!(recalled, [id]);
        drop(lanes);
        assert_eq!(window.recall(id).await?.content(), &Content::from("users.id BIGINT NOT NULL"));
        assert_eq!(window.tombstones_async().await?.len(), 1);
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
    }))
    .map_err(|error| error as Box<dyn std::error::Error>)
}

#[test]
fn a_cancelled_commit_loses_nothing_and_is_said() -> Outcome {
    futures_lite::future::block_on(async {
        let slow = Slow(MemoryStore::default());
        let mut window = Window::<Agent, _>::open_async(slow, Episode::new("e", "p"), keepspan::ByteEstimate).await?;
        window.lanes().schema.push("users.id BIGINT NOT NULL")?;
        {
            let mut cancelled = pin!(window.lanes().externalize().into_future());
            assert!(cancelled.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        }
        assert_eq!(window.uncommitted().spans, 1);
        assert!(matches!(window.lanes().externalize().await, Err(CommitError::Interrupted { .. })));
        assert_eq!(window.render().len(), 1);
        Ok(())
    })
}

/// Polls a step `polls` times and drops it.
fn cancel_after(polls: usize, step: impl IntoFuture) {
    let mut cancelled = pin!(step.into_future());
    for _ in 0..polls {
        assert!(cancelled.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
}

#[test]
fn a_summary_cancelled_while_it_is_read_back_is_not_on_record() -> Outcome {
    futures_lite::future::block_on(async {
        let slow = Slow(MemoryStore::default());
        let mut window = Window::<Agent, _>::open_async(slow, Episode::new("e", "p"), keepspan::ByteEstimate).await?;
        let source = window.lanes().work.push("x".repeat(400))?;
        let lanes = window.lanes().externalize().await?;
        let text = ModelAnswer::new(Finish::Stop, "x").try_into()?;
        // The first poll waits in the commit of the summary's bytes, the second in their read-back.
        cancel_after(2, lanes.work.summarize(source, text, &lanes.recap));
        drop(lanes);
        assert!(window.tombstones_async().await?.is_empty());
        let next = window.lanes().schema.push("users.id BIGINT")?;
        window.lanes().externalize().await?.schema.evict(next).await?;
        let tombstones = window.tombstones_async().await?;
        assert_eq!(tombstones.iter().map(|tombstone| tombstone.span()).collect::<Vec<_>>(), [next]);
        Ok(())
    })
}

#[test]
fn what_only_reads_goes_on_after_a_cancelled_commit() -> Outcome {
    futures_lite::future::block_on(async {
        let slow = Slow(MemoryStore::default());
        let mut window = Window::<Agent, _>::open_async(slow, Episode::new("e", "p"), keepspan::ByteEstimate).await?;
        let evicted = window.lanes().schema.push("users.id BIGINT")?;
        window.lanes().externalize().await?.schema.evict(evicted).await?;
        cancel_after(1, window.change_policy("p2"));
        assert!(matches!(window.change_policy("p3").await, Err(CommitError::Interrupted { .. })));
        assert_eq!(window.recall(evicted).await?.content().as_text(), Some("users.id BIGINT"));
        let later = window.lanes().work.push("goes on")?;
        assert_eq!(window.recall(later).await?.content().as_text(), Some("goes on"));
        Ok(())
    })
}

#[test]
fn two_steps_at_once_are_told_to_wait() -> Outcome {
    futures_lite::future::block_on(async {
        let slow = Slow(MemoryStore::default());
        let mut window = Window::<Agent, _>::open_async(slow, Episode::new("e", "p"), keepspan::ByteEstimate).await?;
        let lanes = window.lanes();
        let (one, two) = (lanes.work.push("one")?, lanes.work.push("two")?);
        let lanes = lanes.externalize().await?;
        let (first, second) =
            futures_lite::future::zip(lanes.work.evict(one).into_future(), lanes.work.evict(two).into_future()).await;
        assert!(first.is_ok());
        assert!(matches!(second, Err(EvictError::Commit(CommitError::Busy { .. }))));
        assert!(lanes.work.evict(two).await.is_ok());
        Ok(())
    })
}

#[test]
fn nothing_is_called_removed_that_the_store_may_hold() -> Outcome {
    use keepspan::{DiscardError, Mutation};
    let store = Arc::new(Faulty::default());
    let mut window = Window::<Agent, _>::open(store.clone(), Episode::new("e", "p"))?;
    let key = window.lanes().work.push("API_KEY=hunter2")?;
    store.arm(2, Fault::Fails);
    assert!(window.lanes().externalize().wait().is_err(), "committed, and not read back");
    let mutation = Mutation::new("leaked key", "ask the operator")?;
    let refused = window.lanes().work.discard(key, mutation.clone()).wait();
    assert!(matches!(refused, Err(DiscardError::InStore { span, holder }) if (span, holder) == (key, key)));

    drop(window.lanes().externalize().wait()?);
    let again = window.lanes().work.push("API_KEY=hunter2")?;
    let refused = window.lanes().work.discard(again, mutation).wait();
    assert!(matches!(refused, Err(DiscardError::InStore { span, holder }) if (span, holder) == (again, key)));
    Ok(())
}
