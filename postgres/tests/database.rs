//! What the database itself holds to, and what can be asked of it in SQL.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

mod common;

use std::sync::Arc;

use common::{by_hand, fresh, named, open, proxy::Proxy, schema, server};
use keepspan::{
    ByteEstimate, ContextState, Digest, Episode, EpisodeId, PolicyVersion, Spans, Window,
    store::{AsyncStore as _, Batch, Blob, Claim, StoreError},
};
use keepspan_postgres::{Error, Objects, Options, PostgresStore, VERSION, migrate, object_store::memory::InMemory};
use tokio_postgres::Client;

const TABLES: [&str; 7] = ["log", "blobs", "claims", "departures", "lanes", "policies", "migrations"];

#[derive(ContextState)]
#[context(budget = 10_000)]
struct Agent {
    #[precondition(tools("describe_table"))]
    schema: Spans,
    #[evictable(otherwise)]
    work: Spans,
    #[derived]
    recap: Spans,
}

/// One row in every table.
async fn filled(options: &Options) -> PostgresStore {
    let store = open(options).await;
    let mut window = Window::<Agent, _>::open_async(store.clone(), Episode::new("e", "p"), ByteEstimate).await.unwrap();
    let lanes = window.lanes();
    let id = lanes.schema.push("users.id BIGINT").unwrap();
    lanes.externalize().await.unwrap().schema.evict(id).await.unwrap();
    let claim = Claim { signature: Digest::of(b"s"), holder: b"h".to_vec() };
    let batch = Batch::new(EpisodeId::new("c"), 0, vec![], vec![vec![1]]).claiming(vec![claim]);
    store.commit(&batch).await.unwrap();
    store
}

async fn refused(client: &Client, statement: &str, code: &str) {
    let error = client.batch_execute(statement).await.expect_err(statement);
    assert_eq!(error.code().map(|code| code.code()), Some(code), "{statement}: {error}");
}

async fn rows(client: &Client, table: &str) -> i64 {
    client.query_one(&format!("SELECT count(*) FROM {table}"), &[]).await.unwrap().get(0)
}

async fn first_column(client: &Client, table: &str) -> String {
    let query = "SELECT attname::text FROM pg_attribute WHERE attrelid = $1::text::regclass AND attnum = 1";
    client.query_one(query, &[&table]).await.unwrap().get(0)
}

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

#[tokio::test]
async fn an_agents_role_has_no_way_around_commit() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let options = fresh(&address).await;
    filled(&options).await;
    let (client, name) = (by_hand(&address, &options).await, named(&options));
    let role = format!("agent_{name}");
    let grants = format!(
        "CREATE ROLE {role}; GRANT USAGE ON SCHEMA {name} TO {role}; \
         GRANT SELECT ON ALL TABLES IN SCHEMA {name} TO {role}; SET ROLE {role}"
    );
    client.batch_execute(&grants).await.unwrap();
    for table in TABLES {
        rows(&client, table).await;
        let column = first_column(&client, table).await;
        for statement in [
            format!("INSERT INTO {table} SELECT * FROM {table}"),
            format!("UPDATE {table} SET {column} = {column}"),
            format!("DELETE FROM {table}"),
            format!("TRUNCATE {table}"),
        ] {
            refused(&client, &statement, "42501").await;
        }
    }
    refused(&client, "UPDATE blobs SET bytes = NULL, sealed = true", "42501").await;
    refused(&client, "ALTER TABLE log DISABLE TRIGGER ALL", "42501").await;
    let arguments = vec!["NULL"; 26].join(", ");
    refused(&client, &format!("SELECT commit({arguments})"), "42501").await;
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
async fn a_refusal_says_what_the_server_says() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let refused = migrate(&Options::new(&address).unwrap().schema("pg_x").unwrap()).await.unwrap_err();
    assert!(refused.to_string().contains("unacceptable schema name \"pg_x\""), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_migrations_at_once_one_does_it() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    // With a default under which one that waited does not see what it waited for.
    let options = schema(&format!("{address}&options=-c%20default_transaction_isolation=repeatable%5C%20read"));
    let none = PostgresStore::connect(options.clone()).await.map(drop);
    assert!(matches!(none, Err(Error::NoStore { schema }) if schema == named(&options)));
    let at_once: Vec<_> = (0..8)
        .map(|_| {
            let options = options.clone();
            tokio::spawn(async move { migrate(&options).await.unwrap() })
        })
        .collect();
    let mut before = Vec::new();
    for done in at_once {
        before.push(done.await.unwrap());
    }
    before.sort_unstable();
    assert_eq!(before, [vec![0], vec![VERSION; 7]].concat());
    filled(&options).await;
    // A store of a later version is neither used nor brought back.
    let client = by_hand(&address, &options).await;
    client.execute("INSERT INTO migrations (version) VALUES ($1)", &[&(VERSION + 1)]).await.unwrap();
    for later in [migrate(&options).await.map(drop), PostgresStore::connect(options.clone()).await.map(drop)] {
        assert!(matches!(later, Err(Error::Version { found, .. }) if found == VERSION + 1), "{later:?}");
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

#[tokio::test]
async fn a_refused_batch_leaves_at_most_an_object_that_nothing_names() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let memory = Arc::new(InMemory::new());
    let options = fresh(&address).await.objects(Objects::new(memory.clone()).above(100));
    let store = open(&options).await;
    let (small, large, other) = (Blob::new(vec![1; 100]), Blob::new(vec![1; 101]), Blob::new(vec![2; 200]));
    let episode = EpisodeId::new("e");
    let batch =
        |expected, blob: &Blob| Batch::new(episode.clone(), expected, vec![small.clone(), blob.clone()], vec![vec![1]]);
    store.commit(&batch(0, &large)).await.unwrap();
    let refused = store.commit(&batch(0, &other)).await;
    assert!(matches!(refused, Err(StoreError::Conflict { expected: 0, found: 1, .. })), "{refused:?}");
    let missing = store.get_many(&[*other.digest()]).await;
    assert!(matches!(missing, Err(StoreError::Missing { digest }) if digest == *other.digest()));
    let verified = store.verify().await.unwrap();
    assert_eq!((verified.objects, verified.bytes, verified.dangling.len()), (2, 301, 0));
    let [orphan] = verified.orphans.as_slice() else { panic!("{verified:?}") };
    assert_eq!((orphan.digest, orphan.bytes, orphan.sealed), (*other.digest(), 200, false));
    // Named after all, it is used as it lies there.
    store.commit(&batch(1, &other)).await.unwrap();
    assert!(store.verify().await.unwrap().orphans.is_empty());
    assert_eq!(store.get_many(&[*other.digest(), *small.digest()]).await.unwrap(), [other.bytes(), small.bytes()]);
    // Whoever has no object store is told where the text is.
    let without =
        PostgresStore::connect(Options::new(&address).unwrap().schema(named(&options)).unwrap()).await.unwrap();
    let elsewhere = without.get_many(&[*large.digest()]).await;
    let Err(StoreError::Backend(error)) = elsewhere else { panic!("{elsewhere:?}") };
    assert!(matches!(error.downcast_ref(), Some(Error::NoObjects { digest }) if digest == large.digest()));

    // A seal takes the object, what is put later is removed again, and what a seal was kept from is found.
    let seal = Batch::new(episode.clone(), 2, vec![], vec![]).sealing(vec![*large.digest()]);
    store.commit(&seal).await.unwrap();
    assert_eq!(store.verify().await.unwrap().objects, 1);
    store.commit(&batch(2, &large)).await.unwrap();
    assert_eq!(store.verify().await.unwrap().objects, 1);
    without.commit(&Batch::new(episode.clone(), 3, vec![], vec![]).sealing(vec![*other.digest()])).await.unwrap();
    let verified = store.verify().await.unwrap();
    assert!(matches!(verified.orphans.as_slice(), [orphan] if orphan.sealed && orphan.digest == *other.digest()));
    assert_eq!(store.scrub().await.unwrap(), 1);
    assert_eq!(store.verify().await.unwrap().objects, 0);
}

#[tokio::test]
async fn a_removed_object_is_told() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let memory = Arc::new(InMemory::new());
    let options = fresh(&address).await;
    let store = open(&options.clone().objects(Objects::new(memory).above(100))).await;
    let large = Blob::new(vec![1; 101]);
    store.commit(&Batch::new(EpisodeId::new("e"), 0, vec![large.clone()], vec![])).await.unwrap();
    let empty = open(&options.objects(Objects::new(Arc::new(InMemory::new())))).await;
    assert_eq!(empty.verify().await.unwrap().dangling, [*large.digest()]);
    let missing = empty.get_many(&[*large.digest()]).await;
    assert!(matches!(missing, Err(StoreError::Missing { digest }) if digest == *large.digest()));
}
