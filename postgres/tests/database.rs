//! What the database itself holds to, and what can be asked of it in SQL.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

mod common;

use std::time::Duration;

use common::{
    by_hand, fresh, named, open,
    proxy::Proxy,
    server,
    sql::{Agent, TABLES, filled, first_column, refused, rows},
};
use keepspan::{
    ByteEstimate, Digest, Episode, EpisodeId, PolicyVersion, Window,
    store::{AsyncStore as _, Batch, Blob, Claim},
};
#[cfg(feature = "s3")]
use keepspan_postgres::Objects;
use keepspan_postgres::{Options, Retry};

#[tokio::test]
async fn nobody_updates_or_deletes_not_even_the_owner() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let options = fresh(&address).await;
    filled(&options).await;
    let client = by_hand(&address, &options).await;
    for table in TABLES {
        assert!(rows(&client, table).await > 0, "{table}");
        let column = first_column(&client, table).await;
        for statement in [
            format!("UPDATE {table} SET {column} = {column}"),
            format!("DELETE FROM {table}"),
            format!("DELETE FROM {table} WHERE false"),
            format!("TRUNCATE {table}"),
            format!("TRUNCATE {table} CASCADE"),
        ] {
            // A statement that finds no row is refused too, but where a seal is let through by the row.
            refused(&client, &statement, "KS003").await;
        }
    }
    for statement in [
        "UPDATE blobs SET bytes = 'other'",
        "UPDATE blobs SET bytes = NULL",
        "UPDATE blobs SET digest = 'other', bytes = NULL, sealed = true",
    ] {
        refused(&client, statement, "KS003").await;
    }
    // A seal takes the bytes, and nothing brings them back.
    refused(&client, "UPDATE blobs SET sealed = true", "23514").await;
    client.batch_execute("UPDATE blobs SET bytes = NULL, sealed = true").await.unwrap();
    refused(&client, "UPDATE blobs SET bytes = 'users.id BIGINT', sealed = false", "KS003").await;
    refused(&client, "UPDATE blobs SET bytes = 'users.id BIGINT'", "23514").await;
}

/// Puts and seals of one another's blobs, by clients that would not try again after a deadlock.
#[tokio::test(flavor = "multi_thread")]
async fn no_two_commits_wait_for_each_other() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let retry = Retry { first: Duration::from_secs(60), most: Duration::from_secs(60), ..Retry::default() };
    let store = open(&fresh(&address).await.retry(retry)).await;
    for round in 0..20_u8 {
        let blobs: Vec<_> = (0..60).map(|n| Blob::new(vec![round, n, 1])).collect();
        let commits = (0..12_usize).map(|writer| {
            let (store, mut blobs) = (store.clone(), blobs.clone());
            blobs.rotate_left(writer * 5);
            if writer % 2 == 0 {
                blobs.reverse();
            }
            let seals = if writer % 3 == 0 { blobs.split_off(30) } else { vec![] };
            let seals = seals.iter().map(|blob| *blob.digest()).collect();
            let episode = EpisodeId::new(format!("e{round} {writer}"));
            tokio::spawn(
                async move { store.commit(&Batch::new(episode, 0, blobs, vec![vec![1]]).sealing(seals)).await },
            )
        });
        for committed in futures_util::future::join_all(commits).await {
            committed.unwrap().unwrap();
        }
    }
}

/// What a client that asks for less durability is given all the same.
#[tokio::test]
async fn a_commit_waits_for_the_disk_whatever_the_default() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let options = fresh(&address).await;
    let mut client = by_hand(&address, &options).await;
    for (default, due) in [("off", "on"), ("local", "local"), ("remote_apply", "remote_apply")] {
        let transaction = client.transaction().await.unwrap();
        let arguments = [format!("'{default}', 0, '1', '{{}}'"), vec!["'{}'"; 22].join(", ")].join(", ");
        let commit = format!("SET LOCAL synchronous_commit = {default}; SELECT commit({arguments})");
        transaction.batch_execute(&commit).await.unwrap();
        let told: String = transaction.query_one("SHOW synchronous_commit", &[]).await.unwrap().get(0);
        assert_eq!(told, due);
    }
}

/// 16 put the same 50 at once, each in an order of its own.
async fn put_by_many(options: Options) {
    let blobs: Vec<_> = (0..50_u8).map(|n| Blob::new(vec![n; 200])).collect();
    let store = open(&options).await;
    let commits = (0..16_usize).map(|writer| {
        let (store, mut blobs) = (store.clone(), blobs.clone());
        blobs.rotate_left(writer * 3);
        if writer % 2 == 0 {
            blobs.reverse();
        }
        async move {
            let episode = EpisodeId::new(format!("e{writer}"));
            store.commit(&Batch::new(episode, 0, blobs, vec![vec![1]])).await.unwrap();
        }
    });
    futures_util::future::join_all(commits).await;
    let digests: Vec<_> = blobs.iter().map(|blob| *blob.digest()).collect();
    let found = store.get_many(&digests).await.unwrap();
    assert!(found.iter().map(Vec::as_slice).eq(blobs.iter().map(Blob::bytes)));
    assert_eq!(store.episodes().await.unwrap().len(), 16);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_put_the_same_at_once() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let options = fresh(&address).await;
    put_by_many(options.clone()).await;
    let client = by_hand(&address, &options).await;
    assert_eq!(rows(&client, "blobs").await, 50);
    #[cfg(feature = "s3")]
    if let Some(bucket) = server("KEEPSPAN_S3") {
        let options = fresh(&address).await;
        let objects = Objects::open(&bucket).unwrap().folder(named(&options)).above(100);
        let options = options.objects(objects);
        put_by_many(options.clone()).await;
        let verified = open(&options).await.verify().await.unwrap();
        assert_eq!((verified.objects, verified.orphans.len(), verified.dangling.len()), (50, 0, 0));
    }
}

#[tokio::test]
async fn tombstones_are_rows() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let options = fresh(&address).await;
    let policy = PolicyVersion::new("p").model("m").prompt("a\0b");
    for name in ["run-7", "ü\0"] {
        let episode = Episode::new(name, policy.clone());
        let mut window = Window::<Agent, _>::open_async(open(&options).await, episode, ByteEstimate).await.unwrap();
        let lanes = window.lanes();
        let schema = lanes.schema.push("users.id BIGINT").unwrap();
        let work = lanes.work.push("a diff").unwrap();
        let mut told = lanes.externalize().await.unwrap().schema.evict(schema).await.unwrap();
        window.change_policy("q").await.unwrap();
        told.extend(window.lanes().externalize().await.unwrap().work.evict(work).await.unwrap());

        let client = by_hand(&address, &options).await;
        let query = "SELECT span, lane, kind, starts, ends, sha256, policy, model, prompt, \
                     abs(extract(epoch FROM now() - time)) < 600, episode FROM tombstones WHERE key = $1 ORDER BY record";
        let rows = client.query(query, &[&name.as_bytes()]).await.unwrap();
        assert_eq!(rows.len(), told.len());
        for (row, tombstone) in rows.iter().zip(&told) {
            assert_eq!(row.get::<_, String>(0), tombstone.span().to_string());
            assert_eq!(row.get::<_, String>(1), tombstone.lane());
            assert_eq!(row.get::<_, String>(2), tombstone.kind().attribute());
            let range = [3, 4].map(|at| u64::try_from(row.get::<_, i64>(at)).unwrap());
            assert_eq!(range[0]..range[1], tombstone.token_range());
            assert_eq!(row.get::<_, String>(5), tombstone.sha256().to_string());
            assert_eq!(row.get::<_, String>(6), tombstone.policy().name());
            assert!(row.get::<_, bool>(9), "its time");
        }
        let versions: Vec<_> =
            rows.iter().map(|row| [row.get(7), row.get(8)].map(|text: Option<String>| text)).collect();
        assert_eq!(versions, [[Some("m".into()), Some("a\u{fffd}b".into())], [None, None]]);
        let shown = if name == "run-7" { "run-7" } else { "\\303\\274\\000" };
        assert_eq!(rows[0].get::<_, String>(10), shown);
    }
    let episodes = open(&options).await.episodes().await.unwrap();
    assert_eq!(episodes, [(EpisodeId::new("run-7"), 5), (EpisodeId::new("ü\0"), 5)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_and_a_read_are_one_round_trip() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let (proxy, through) = Proxy::before(&address).await;
    let name = named(&fresh(&address).await);
    let options = Options::new(&through).unwrap().schema(name).unwrap().connections(1);
    let store = open(&options).await;
    let blobs = |seed: u8| (0..50).map(|n| Blob::new(vec![[seed, n]; 2_048].concat())).collect::<Vec<_>>();
    let batch = |n: u8| {
        let claim = Claim { signature: Digest::from_bytes([n; 32]), holder: vec![n] };
        Batch::new(EpisodeId::new("e"), n.into(), blobs(n), vec![vec![n]]).claiming(vec![claim])
    };
    let digests: Vec<_> = blobs(1).iter().map(|blob| *blob.digest()).collect();
    // The first of a kind on a connection is prepared before.
    for n in 0..4 {
        let warm = n > 1;
        let expected = |seen: u64| if warm { seen == 1 } else { seen >= 1 };
        proxy.round_trips();
        store.commit(&batch(n)).await.unwrap();
        assert!(expected(proxy.round_trips()));
        if n > 0 {
            assert_eq!(store.get_many(&digests).await.unwrap().len(), 50);
            assert!(expected(proxy.round_trips()));
            store.read(&EpisodeId::new("e"), 0, 10).await.unwrap();
            assert!(expected(proxy.round_trips()));
            store.holders(&[Digest::from_bytes([0; 32])]).await.unwrap();
            assert!(expected(proxy.round_trips()));
        }
    }
}
