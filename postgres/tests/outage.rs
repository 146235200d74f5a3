//! The connection is lost, or the server: what was acknowledged is there, nothing is written twice, and what is not known is
//! said to be.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

mod common;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use common::{by_hand, fresh, named, open, own::Server, proxy::Proxy, server};
use keepspan::{
    ByteEstimate, Digest, Episode, EpisodeId, Failure, Permission, Recovered, Window,
    store::{AsyncStore as _, Batch, Blob, Claim, StoreError},
};
use keepspan_postgres::{Error, Options, PostgresStore, Retry, migrate};
use keepspan_tests::{Agent, acts::Write};
use tokio::{task::spawn_blocking, time::sleep};

/// A short deadline for what is to fail.
fn hasty() -> Retry {
    Retry { deadline: Duration::from_millis(500), ..Retry::default() }
}

fn batch(episode: &str, number: u64) -> Batch {
    let record = format!("{episode} {number}").into_bytes();
    Batch::new(EpisodeId::new(episode), number, vec![Blob::new(record.repeat(100))], vec![record])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_in_the_middle_of_1000_commits_loses_none_and_repeats_none() {
    const WRITERS: u64 = 4;
    const EACH: u64 = 250;
    const KILLS: u64 = 3;
    if server("KEEPSPAN_POSTGRES").is_none() {
        return;
    }
    let own = Arc::new(spawn_blocking(Server::start).await.unwrap());
    let options = Options::new(&own.address).unwrap();
    migrate(&options).await.unwrap();
    let store = PostgresStore::connect(options.clone()).await.unwrap();
    let done = Arc::new(AtomicU64::new(0));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (store, done) = (store.clone(), done.clone());
            tokio::spawn(async move {
                let mut longest = Duration::ZERO;
                for number in 0..EACH {
                    let begun = Instant::now();
                    store.commit(&batch(&format!("e{writer}"), number)).await.unwrap();
                    longest = longest.max(begun.elapsed());
                    done.fetch_add(1, Ordering::SeqCst);
                }
                longest
            })
        })
        .collect();
    for kill in 1..=KILLS {
        // In the middle of it each time.
        while done.load(Ordering::SeqCst) < kill * WRITERS * EACH / (KILLS + 1) {
            assert!(writers.iter().any(|writer| !writer.is_finished()), "they gave up, or were done too early");
            sleep(Duration::from_millis(1)).await;
        }
        let own = own.clone();
        spawn_blocking(move || {
            own.crash();
            own.restart()
        })
        .await
        .unwrap();
    }
    assert!(done.load(Ordering::SeqCst) < WRITERS * EACH, "the last kill came too late");
    for writer in writers {
        println!("longest commit: {:.1?}", writer.await.unwrap());
    }
    for writer in 0..WRITERS {
        let episode = format!("e{writer}");
        let log = store.read(&EpisodeId::new(episode.as_str()), 0, u64::MAX).await.unwrap();
        let due: Vec<_> = (0..EACH).map(|number| batch(&episode, number).records()[0].clone()).collect();
        assert_eq!(log, due);
        let digests: Vec<_> = (0..EACH).map(|number| *batch(&episode, number).blobs()[0].digest()).collect();
        let blobs = store.get_many(&digests).await.unwrap();
        assert!(blobs.iter().zip(&digests).all(|(blob, digest)| Digest::of(blob) == *digest));
    }
    spawn_blocking(move || drop(own)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_may_lose_what_it_acknowledges_is_refused() {
    if server("KEEPSPAN_POSTGRES").is_none() {
        return;
    }
    let own = spawn_blocking(Server::start).await.unwrap();
    let options = Options::new(&own.address).unwrap();
    migrate(&options).await.unwrap();
    PostgresStore::connect(options.clone()).await.unwrap();
    let client = by_hand(&own.address, &options).await;
    client.batch_execute("ALTER SYSTEM SET fsync = off").await.unwrap();
    client.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    while client.query_one("SHOW fsync", &[]).await.unwrap().get::<_, &str>(0) == "on" {
        sleep(Duration::from_millis(5)).await;
    }
    assert!(matches!(PostgresStore::connect(options).await, Err(Error::NotDurable)));
    spawn_blocking(move || drop(own)).await.unwrap();
}

/// A store behind a proxy, and beside it a connection to the database itself.
async fn behind(address: &str, retry: Retry) -> (Proxy, PostgresStore, tokio_postgres::Client) {
    let options = fresh(address).await;
    let (proxy, through) = Proxy::before(address).await;
    let store = Options::new(&through).unwrap().schema(named(&options)).unwrap().retry(retry);
    (proxy, PostgresStore::connect(store).await.unwrap(), by_hand(address, &options).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_acknowledgement_is_settled_by_asking() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let (proxy, store, client) = behind(&address, Retry::default()).await;
    let claim = |holder: &[u8]| vec![Claim { signature: Digest::of(b"once"), holder: holder.to_vec() }];
    let episode = EpisodeId::new("e");
    // The answer of a statement that is prepared already, so that it is the commit's.
    store.commit(&batch("e", 0)).await.unwrap();
    for lost in [
        batch("e", 1),
        Batch::new(episode.clone(), 2, vec![Blob::new(vec![7; 100])], vec![]),
        // Held by nobody but by the first try of this very commit.
        Batch::new(episode.clone(), 2, vec![], vec![]).claiming(claim(b"me")),
        Batch::new(episode.clone(), 2, vec![], vec![vec![3]]).sealing(vec![Digest::of(&[7; 100])]),
    ] {
        proxy.loses.store(true, Ordering::SeqCst);
        store.commit(&lost).await.unwrap();
        assert!(!proxy.loses.load(Ordering::SeqCst), "an answer was lost");
    }
    assert_eq!(store.length(&episode).await.unwrap(), 3);
    // Its log has gone on since, and it is still the one that holds it.
    let commit = "SELECT commit('e', 2, (SELECT attempt FROM claims), '{}', '{}', '{}', '{}', \
                  ARRAY(SELECT signature FROM claims), ARRAY(SELECT holder FROM claims), ";
    client.batch_execute(&format!("{commit}{})", vec!["'{}'"; 17].join(", "))).await.unwrap();
    assert_eq!(client.query_one("SELECT count(*) FROM log", &[]).await.unwrap().get::<_, i64>(0), 3);
    // A refusal that was lost is one the second time too: the same bytes of somebody else are not one's own.
    for (refused, expected) in [(batch("e", 1), "conflict"), (batch("e", 3).claiming(claim(b"me")), "claimed")] {
        proxy.loses.store(true, Ordering::SeqCst);
        match store.commit(&refused).await {
            Err(StoreError::Conflict { expected: 1, found: 3, .. }) => assert_eq!(expected, "conflict"),
            Err(StoreError::Claimed { holder, .. }) => {
                assert_eq!((expected, holder.as_slice()), ("claimed", &b"me"[..]))
            }
            other => panic!("{other:?}"),
        }
        assert!(!proxy.loses.load(Ordering::SeqCst), "an answer was lost");
    }
    assert_eq!(store.length(&episode).await.unwrap(), 3);
}

/// What leaves no mark of its own is not known, once the log has gone on.
#[tokio::test(flavor = "multi_thread")]
async fn a_seal_whose_answer_was_lost_is_not_said_to_be_undone() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let retry = Retry { first: Duration::from_millis(500), ..Retry::default() };
    let (proxy, store, client) = behind(&address, retry).await;
    let schema: String = client.query_one("SELECT current_schema()::text", &[]).await.unwrap().get(0);
    let other = open(&Options::new(&address).unwrap().schema(schema).unwrap()).await;
    let seal =
        |expected| Batch::new(EpisodeId::new("e"), expected, vec![], vec![]).sealing(vec![Digest::of(b"secret")]);
    store.commit(&batch("e", 0)).await.unwrap();
    store.commit(&seal(1)).await.unwrap();
    proxy.loses.store(true, Ordering::SeqCst);
    let (batch, sealed) = (seal(1), store.clone());
    let lost = tokio::spawn(async move { sealed.commit(&batch).await });
    while proxy.loses.load(Ordering::SeqCst) {
        sleep(Duration::from_millis(1)).await;
    }
    other.commit(&self::batch("e", 1)).await.unwrap();
    let lost = lost.await.unwrap();
    assert!(matches!(lost, Err(StoreError::Unacknowledged)), "{lost:?}");
    // One that was never sent is refused.
    assert!(matches!(store.commit(&seal(1)).await, Err(StoreError::Conflict { found: 2, .. })));
}

/// Whoever gives up on a commit does not keep others from the connection that it waits on.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_is_dropped_keeps_no_connection() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let options = fresh(&address).await.connections(1).retry(hasty());
    let store = open(&options).await;
    store.commit(&batch("e", 0)).await.unwrap();
    let mut client = by_hand(&address, &options).await;
    let held = client.transaction().await.unwrap();
    held.batch_execute("LOCK TABLE log IN EXCLUSIVE MODE").await.unwrap();
    let dropped = tokio::time::timeout(Duration::from_millis(100), store.commit(&batch("e", 1))).await;
    assert!(dropped.is_err(), "it waits: {dropped:?}");
    assert_eq!(store.length(&EpisodeId::new("e")).await.unwrap(), 1);
    held.rollback().await.unwrap();
    // Whether it happens is left to the server.
    assert!(matches!(store.length(&EpisodeId::new("e")).await.unwrap(), 1 | 2));
}

/// Another server at the address, after a failover that came to nothing: found on the connection, not at the start only.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_became_a_standby_is_refused() {
    if server("KEEPSPAN_POSTGRES").is_none() {
        return;
    }
    let own = spawn_blocking(Server::start).await.unwrap();
    let options = Options::new(&own.address).unwrap();
    migrate(&options).await.unwrap();
    let store = PostgresStore::connect(options.clone()).await.unwrap();
    store.commit(&batch("e", 0)).await.unwrap();
    let own = spawn_blocking(move || {
        own.crash();
        own.write("standby.signal", "");
        own.restart();
        own
    });
    let own = own.await.unwrap();
    for refused in [store.commit(&batch("e", 1)).await, store.length(&EpisodeId::new("e")).await.map(drop)] {
        let Err(StoreError::Backend(error)) = refused else { panic!("{refused:?}") };
        assert!(matches!(error.downcast_ref(), Some(Error::Standby)), "{error:?}");
    }
    assert!(matches!(PostgresStore::connect(options).await, Err(Error::Standby)));
    spawn_blocking(move || drop(own)).await.unwrap();
}

/// The server goes on with what its client does not wait for any more; asked again, it does not begin anew.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_still_runs_is_waited_for() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let (proxy, store, mut client) = behind(&address, Retry::default()).await;
    let watch = by_hand(&address, &fresh(&address).await).await;
    store.commit(&batch("e", 0)).await.unwrap();
    let blob = batch("e", 1).blobs()[0].clone();
    // The commit comes as far as this blob, and has to wait.
    let held = client.transaction().await.unwrap();
    let insert = "INSERT INTO blobs (digest, bytes) VALUES ($1, $2)";
    held.execute(insert, &[&&blob.digest().as_bytes()[..], &blob.bytes()]).await.unwrap();
    let waiting =
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'SELECT commit%'";
    let (committing, cut) = {
        let (store, cut) = (store.clone(), proxy.cut.clone());
        (tokio::spawn(async move { store.commit(&batch("e", 1)).await }), cut)
    };
    for (tries, cut) in [(1_i64, Some(cut)), (2, None)] {
        let begun = Instant::now();
        while watch.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) < tries {
            assert!(begun.elapsed() < Duration::from_secs(10), "try {tries} does not wait");
            sleep(Duration::from_millis(5)).await;
        }
        if let Some(cut) = cut {
            cut.notify_waiters();
        }
    }
    held.rollback().await.unwrap();
    committing.await.unwrap().unwrap();
    assert_eq!(store.length(&EpisodeId::new("e")).await.unwrap(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_answer_is_given_up_at_the_deadline() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let (proxy, store, _) = behind(&address, hasty()).await;
    store.commit(&batch("e", 0)).await.unwrap();
    proxy.silent.store(true, Ordering::SeqCst);
    let begun = Instant::now();
    assert!(matches!(store.commit(&batch("e", 1)).await, Err(StoreError::Unacknowledged)));
    let Err(StoreError::Backend(error)) = store.length(&EpisodeId::new("e")).await else { panic!() };
    let told = error.downcast_ref();
    assert!(
        matches!(told, Some(Error::Unavailable { attempts: 1.., waited, .. }) if *waited < begun.elapsed()),
        "{told:?}"
    );
    assert!((Duration::from_millis(900)..Duration::from_secs(3)).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    // By itself, as soon as it is back.
    proxy.silent.store(false, Ordering::SeqCst);
    assert_eq!(store.length(&EpisodeId::new("e")).await.unwrap(), 1);
    store.commit(&batch("e", 1)).await.unwrap();
    // Nobody there: the statement was not sent, so nothing is open.
    let nobody = Options::new("postgres://keepspan@127.0.0.1:1/postgres?sslmode=disable").unwrap().retry(hasty());
    let refused = PostgresStore::connect(nobody).await.map(drop);
    assert!(matches!(refused, Err(Error::Unavailable { attempts: 2.., source: Some(_), .. })), "{refused:?}");
    // What waiting does not mend is told at once.
    let wrong = Options::new(&address.replace("/postgres?", "/nowhere?")).unwrap();
    let begun = Instant::now();
    let refused = migrate(&wrong).await;
    assert!(matches!(refused, Err(Error::Server(_))), "{refused:?}");
    let refused = PostgresStore::connect(wrong).await.map(drop);
    assert!(matches!(refused, Err(Error::Server(_))) && begun.elapsed() < Duration::from_secs(3), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_lost_in_the_middle_of_an_action_leaves_it_uncertain() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let (proxy, store, _) = behind(&address, hasty()).await;
    let mut window = Window::<Agent, _>::open_async(store, Episode::new("e", "p"), ByteEstimate).await.unwrap();
    window.lanes().schema.push("users.id BIGINT").unwrap();
    window.lanes().target.push("staging").unwrap();
    let runs = AtomicU64::new(0);
    let effect = |loses: bool| {
        let (runs, proxy) = (&runs, &proxy);
        async move |_: keepspan::Granted<'_, Write>| {
            runs.fetch_add(1, Ordering::SeqCst);
            proxy.silent.store(loses, Ordering::SeqCst);
            Ok::<_, Failure>("written")
        }
    };
    let action = Write::to("a");
    let Permission::Fresh(permit) = window.permit_async(&action).await.unwrap() else { panic!() };
    let ended = permit.run_async(effect(true)).await;
    assert!(ended.is_err(), "its outcome could not be written: {ended:?}");
    // Until it is known what became of that, nothing more is written.
    proxy.silent.store(false, Ordering::SeqCst);
    assert_eq!(window.recover_async().await.unwrap(), Recovered::NotWritten);
    let permission = window.permit_async(&action).await.unwrap();
    assert!(matches!(permission, Permission::Uncertain(_)), "{permission:?}");
    // Nothing runs where the intent cannot be written.
    let other = Write::to("b");
    let Permission::Fresh(permit) = window.permit_async(&other).await.unwrap() else { panic!() };
    proxy.silent.store(true, Ordering::SeqCst);
    assert!(permit.run_async(effect(false)).await.is_err());
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    proxy.silent.store(false, Ordering::SeqCst);
    assert_eq!(window.recover_async().await.unwrap(), Recovered::NotWritten);
    let Permission::Fresh(permit) = window.permit_async(&other).await.unwrap() else { panic!() };
    permit.run_async(effect(false)).await.unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), 2);
}
