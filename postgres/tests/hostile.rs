//! What a role, an operator, a pooler between or chance can do to a store, and what is told then.
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
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use common::{
    by_hand, fresh, named, open, schema, server,
    sql::{Agent, filled, of_version_1, refused, role},
};
use keepspan::{
    ByteEstimate, CommitError, Digest, Episode, EpisodeId, Recovered, Window,
    store::{AsyncStore as _, Batch, Blob, Claim, StoreError},
};
use keepspan_postgres::{
    Error, Objects, Options, PostgresStore, Retry, VERSION, migrate,
    object_store::{ObjectStoreExt as _, local::LocalFileSystem, memory::InMemory, path::Path},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};
use tokio_postgres::Client;

fn hasty() -> Retry {
    Retry { deadline: Duration::from_millis(500), ..Retry::default() }
}

fn batch(episode: &str, number: u64) -> Batch {
    let record = format!("{episode} {number}").into_bytes();
    Batch::new(EpisodeId::new(episode), number, vec![Blob::new(record.repeat(100))], vec![record])
}

/// A call of `commit` by hand; `arrays` are those from `digests` on, and the rest are empty.
fn call(of: &str, expected: u64, records: &str, arrays: &[&str]) -> String {
    let all = [arrays, &vec!["'{}'"; 22 - arrays.len()]].concat().join(", ");
    format!("SELECT commit({of}, {expected}, 'a', {records}, {all})")
}

/// A connection that has the grants of the README and no more.
async fn agent(address: &str, options: &Options) -> Client {
    let client = by_hand(address, options).await;
    let role = role(&client, &named(options)).await;
    client.batch_execute(&format!("SET ROLE {role}")).await.unwrap();
    client
}

async fn until(client: &Client, query: &str, least: i64) {
    let begun = Instant::now();
    while client.query_one(query, &[]).await.unwrap().get::<_, i64>(0) < least {
        assert!(begun.elapsed() < Duration::from_secs(10), "never: {query}");
        sleep(Duration::from_millis(5)).await;
    }
}

const WAITING: &str =
    "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'SELECT commit%'";

/// "Bytes are those of their digest ... no client leaves others' texts under a wrong name."
#[tokio::test]
async fn a_digest_named_without_bytes_does_not_swallow_the_text_of_others() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let options = fresh(&address).await;
    let client = agent(&address, &options).await;
    let name = call("'x'", 0, "'{}'", &["ARRAY[sha256('users.id BIGINT')]", "ARRAY[NULL::bytea]"]);
    client.batch_execute(&name).await.unwrap();
    let (store, blob) = (open(&options).await, Blob::new(b"users.id BIGINT".to_vec()));
    store.commit(&Batch::new(EpisodeId::new("e"), 0, vec![blob.clone()], vec![vec![1]])).await.unwrap();
    let found = store.get_many(&[*blob.digest()]).await;
    assert_eq!(found.expect("what was acknowledged is there"), [blob.bytes()]);
}

/// Without an attacker: two handles of one bucket with another `above`, and an object that was lost.
#[tokio::test]
async fn a_text_that_is_put_again_is_there_again() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let (options, memory) = (fresh(&address).await, Arc::new(InMemory::new()));
    let low = open(&options.clone().objects(Objects::new(memory.clone()).above(10))).await;
    let high = open(&options.clone().objects(Objects::new(memory.clone()))).await;
    let blob = Blob::new(vec![7; 200]);
    let put = |number| Batch::new(EpisodeId::new("e"), number, vec![blob.clone()], vec![vec![1]]);
    low.commit(&put(0)).await.unwrap();
    memory.delete(&Path::from_iter([named(&options), blob.digest().to_string()])).await.unwrap();
    high.commit(&put(1)).await.unwrap();
    assert_eq!(high.get_many(&[*blob.digest()]).await.expect("acknowledged"), [blob.bytes()]);
}

/// One that lands after the store said that it has none is the window's own.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_after_all_is_not_written_again() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let options = fresh(&address).await;
    let store = open(&options.clone().retry(hasty())).await;
    let mut window = Window::<Agent, _>::open_async(store, Episode::new("e", "p"), ByteEstimate).await.unwrap();
    let mut client = by_hand(&address, &options).await;
    // The commit waits for this blob of another's transaction, longer than the deadline.
    let held = client.transaction().await.unwrap();
    let insert = "INSERT INTO blobs (digest, bytes) VALUES (sha256('a diff'), 'a diff')";
    held.batch_execute(insert).await.unwrap();
    window.lanes().work.push("a diff").unwrap();
    assert!(window.lanes().externalize().await.is_err(), "no answer");
    assert_eq!(window.recover_async().await.unwrap(), Recovered::NotWritten);
    held.rollback().await.unwrap();
    match window.lanes().externalize().await.map(drop) {
        Ok(()) => {}
        Err(CommitError::Superseded { .. }) => {
            assert_eq!(window.recover_async().await.unwrap(), Recovered::Written { moved: vec![] });
        }
        Err(other) => panic!("{other:?}"),
    }
    drop(window.lanes().externalize().await.unwrap());
    let spans = window.render().len();
    assert_eq!((spans, window.unsaved().len()), (1, 0));
}

/// "a server with `fsync = off` and a standby are refused on every new connection".
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_whose_check_was_refused_is_checked_the_next_time() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let name = named(&fresh(&address).await);
    let hurried = format!("{address}&options=-c%20lock_timeout=100&application_name={name}");
    let options = Options::new(&hurried).unwrap().schema(name.clone()).unwrap().connections(1);
    let store = open(&options).await;
    let mut client = by_hand(&address, &options).await;
    client
        .execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1", &[&name])
        .await
        .unwrap();
    let held = client.transaction().await.unwrap();
    held.batch_execute("LOCK TABLE migrations IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let refused = store.length(&EpisodeId::new("e")).await.unwrap_err();
    assert!(refused.to_string().contains("lock timeout"), "{refused}");
    held.execute("INSERT INTO migrations (version) VALUES ($1)", &[&(VERSION + 1)]).await.unwrap();
    held.commit().await.unwrap();
    let version = store.commit(&batch("e", 0)).await;
    assert!(version.is_err(), "a store of version {} was written to unchecked: {version:?}", VERSION + 1);
}

/// A commit takes `claims` and then `blobs`; the migration takes them the other way round.
#[tokio::test(flavor = "multi_thread")]
async fn a_migration_beside_live_commits_does_not_deadlock() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let (options, old) = of_version_1(&address).await;
    let watch = by_hand(&address, &options).await;
    let mut other = by_hand(&address, &options).await;
    let held = other.transaction().await.unwrap();
    held.batch_execute("INSERT INTO claims VALUES (sha256('s'), 'h', 'other')").await.unwrap();
    let commit = call(
        "'e'",
        0,
        "ARRAY['r'::bytea]",
        &["ARRAY[sha256('t')]", "ARRAY['t'::bytea]", "'{}'", "ARRAY[sha256('s')]", "ARRAY['h'::bytea]"],
    );
    let committing = tokio::spawn(async move { old.batch_execute(&commit).await });
    until(&watch, &WAITING.replace("commit%", "commit%sha256(''s'')%"), 1).await;
    let migrating = tokio::spawn(async move { migrate(&options).await });
    let altering = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%NOT VALID%'";
    until(&watch, altering, 1).await;
    held.rollback().await.unwrap();
    let (committed, migrated) = (committing.await.unwrap(), migrating.await.unwrap());
    assert!(committed.is_ok() && migrated.is_ok(), "{committed:?} {migrated:?}");
}

/// `Retry::deadline`: "what has no answer yet is given up"; while it waits, every commit and read waits behind it.
#[tokio::test(flavor = "multi_thread")]
async fn a_migration_gives_up_at_the_deadline() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let (options, _old) = of_version_1(&address).await;
    let mut other = by_hand(&address, &options).await;
    let held = other.transaction().await.unwrap();
    held.batch_execute("SELECT count(*) FROM blobs").await.unwrap();
    let task = tokio::spawn({
        let options = options.clone().retry(hasty());
        async move { migrate(&options).await }
    });
    sleep(Duration::from_secs(3)).await;
    let reader = by_hand(&address, &options).await;
    let blocked = timeout(Duration::from_secs(1), reader.query("SELECT FROM blobs LIMIT 1", &[])).await.is_err();
    let finished = task.is_finished();
    held.rollback().await.unwrap();
    assert!(finished, "still waiting after 3 s with a deadline of 0.5 s; readers blocked behind it: {blocked}");
}

/// "Nothing updates and nothing deletes. Triggers refuse it to everybody, the owner included."
#[tokio::test]
async fn nobody_deletes_in_the_role_of_a_replica() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let options = fresh(&address).await;
    filled(&options).await;
    let client = by_hand(&address, &options).await;
    client.batch_execute("SET session_replication_role = replica").await.unwrap();
    refused(&client, "DELETE FROM log", "KS003").await;
}

/// What a role with the README's grants says of evictions is of records that it writes itself, and can be read.
#[tokio::test]
async fn no_role_makes_the_tombstones_of_others_unreadable() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let options = fresh(&address).await;
    filled(&options).await;
    let (reader, agent) = (by_hand(&address, &options).await, agent(&address, &options).await);
    let count = async |of: &str| -> i64 {
        reader.query_one(&format!("SELECT count(*) FROM log WHERE episode = {of}"), &[]).await.unwrap().get(0)
    };
    let of = [("'e'", "-1", 0, Some("23514")), (r"'\xff'", "0", 0, None), ("'e'", "0", 1, Some("KS005"))];
    for (of, policy, beyond, code) in of {
        let length = count(of).await;
        let mut arrays = vec!["'{}'".to_owned(); 12];
        arrays.push(format!("'{{{}}}'", length + beyond));
        arrays.extend(["'{1}'", "'{0}'"].map(str::to_owned));
        arrays.push(format!("'{{{policy}}}'"));
        arrays.extend(["'{0}'", "'{1}'", "'{NULL}'", "'{x}'", "'{NULL}'", "'{NULL}'"].map(str::to_owned));
        let arrays: Vec<_> = arrays.iter().map(String::as_str).collect();
        let said = call(of, length.try_into().unwrap(), "ARRAY['r'::bytea]", &arrays);
        match code {
            Some(code) => refused(&agent, &said, code).await,
            None => agent.batch_execute(&said).await.unwrap(),
        }
        assert_eq!(count(of).await, length + i64::from(code.is_none()));
        reader.query("SELECT * FROM tombstones", &[]).await.unwrap();
    }
}

/// A longer deadline does not give up earlier.
#[tokio::test]
async fn the_longest_deadline_is_long() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let options = fresh(&address).await.retry(Retry { deadline: Duration::MAX, ..Retry::default() });
    PostgresStore::connect(options).await.unwrap();
}

/// Loses the answer to the first message that has `word` in it.
async fn losing(address: &str, word: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = address.split(['@', '/']).find(|part| part.contains("127.0.0.1:")).unwrap().to_owned();
    let through = address.replace(&server, &listener.local_addr().unwrap().to_string());
    let lost = Arc::new(AtomicBool::new(false));
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let (mut server, lost) = (TcpStream::connect(&server).await.unwrap(), lost.clone());
            tokio::spawn(async move {
                let (mut asked, mut told) = (vec![0; 1 << 16], vec![0; 1 << 16]);
                let mut loses = false;
                loop {
                    tokio::select! {
                        read = client.read(&mut asked) => {
                            let length = read.unwrap_or(0);
                            if length == 0 { return }
                            let found = asked[..length].windows(word.len()).any(|found| found == word);
                            loses |= found && !lost.swap(true, Ordering::SeqCst);
                            server.write_all(&asked[..length]).await.unwrap();
                        }
                        read = server.read(&mut told) => {
                            let length = read.unwrap_or(0);
                            if length == 0 || loses { return }
                            client.write_all(&told[..length]).await.unwrap();
                        }
                    }
                }
            });
        }
    });
    through
}

/// The answer to a migration is lost: it is looked after, and found done.
#[tokio::test(flavor = "multi_thread")]
async fn a_migration_whose_answer_was_lost_is_not_said_to_be_refused() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let options = Options::new(&losing(&address, b"COMMIT\0").await).unwrap().schema(named(&schema(&address))).unwrap();
    assert_eq!(migrate(&options).await.unwrap(), VERSION);
    let direct = Options::new(&address).unwrap().schema(named(&options)).unwrap();
    open(&direct).await;
}

/// `Options::connections`: "The most connections of one `PostgresStore`".
#[tokio::test(flavor = "multi_thread")]
async fn dropped_commits_do_not_take_more_connections_than_there_are() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let name = named(&fresh(&address).await);
    let options = Options::new(&format!("{address}&application_name={name}"))
        .unwrap()
        .schema(name.clone())
        .unwrap()
        .connections(1);
    let store = open(&options).await;
    let mut client = by_hand(&address, &options).await;
    let held = client.transaction().await.unwrap();
    held.batch_execute("LOCK TABLE log IN EXCLUSIVE MODE").await.unwrap();
    for _ in 0..20 {
        drop(timeout(Duration::from_millis(100), store.commit(&batch("e", 0))).await);
    }
    let there = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1";
    let there: i64 = held.query_one(there, &[&name]).await.unwrap().get(0);
    held.rollback().await.unwrap();
    assert!(there <= 2, "{there} server processes for one connection");
}

/// `migrate` runs what another role left in the schema, with the rights of whoever deploys.
#[tokio::test]
async fn a_schema_that_another_role_prepared_is_not_used() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    for trap in [TRIGGER, VIEW] {
        trapped(&address, trap).await;
    }
}

const TRIGGER: &str = "CREATE TABLE migrations (version integer PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now()); \
    CREATE FUNCTION trap() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE evil SUPERUSER; RETURN NEW; END $$; \
    CREATE TRIGGER trap BEFORE INSERT ON migrations FOR EACH ROW EXECUTE FUNCTION trap()";
const VIEW: &str = "CREATE FUNCTION trap() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE evil SUPERUSER; RETURN 2; END $$; \
    CREATE VIEW migrations AS SELECT trap() AS version";

async fn trapped(address: &str, trap: &str) {
    let options = schema(address);
    let (client, name) = (by_hand(address, &options).await, named(&options));
    let trap = format!(
        "CREATE ROLE evil_{name} LOGIN; GRANT CREATE ON DATABASE postgres TO evil_{name}; SET ROLE evil_{name}; \
         CREATE SCHEMA {name}; SET search_path = {name}; {}; RESET ROLE",
        trap.replace("ROLE evil", &format!("ROLE evil_{name}"))
    );
    client.batch_execute(&trap).await.unwrap();
    let migrated = migrate(&options).await;
    let superuser: bool = client
        .query_one(&format!("SELECT rolsuper FROM pg_roles WHERE rolname = 'evil_{name}'"), &[])
        .await
        .unwrap()
        .get(0);
    client.batch_execute(&format!("ALTER ROLE evil_{name} NOSUPERUSER")).await.unwrap();
    assert!(!superuser, "{migrated:?}, and whoever prepared the schema is superuser now");
}

/// The functions run as the owner: what others may add to the schema runs as the owner too.
#[tokio::test]
async fn a_schema_in_which_others_may_create_is_refused_or_safe() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let options = fresh(&address).await;
    let (agent, name) = (agent(&address, &options).await, named(&options));
    agent
        .batch_execute(&format!("RESET ROLE; GRANT CREATE ON SCHEMA {name} TO agent_{name}; SET ROLE agent_{name}"))
        .await
        .unwrap();
    let shadow = format!(
        "CREATE FUNCTION {name}.cardinality(bytea[]) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN \
             IF current_user <> 'agent_{name}' THEN ALTER ROLE agent_{name} SUPERUSER; END IF; RETURN 0; END $$"
    );
    agent.batch_execute(&shadow).await.unwrap();
    drop(agent.batch_execute(&call("'e'", 0, "'{}'", &[])).await);
    agent.batch_execute("RESET ROLE").await.unwrap();
    let superuser: bool = agent
        .query_one(&format!("SELECT rolsuper FROM pg_roles WHERE rolname = 'agent_{name}'"), &[])
        .await
        .unwrap()
        .get(0);
    agent.batch_execute(&format!("ALTER ROLE agent_{name} NOSUPERUSER")).await.unwrap();
    assert!(!superuser, "an agent that may create in the schema is superuser now");
}

/// "More than one statement carries" is told before it is sent, and is not in doubt.
#[tokio::test(flavor = "multi_thread")]
async fn holders_that_are_too_large_are_told_so() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let store =
        open(&fresh(&address).await.retry(Retry { deadline: Duration::from_secs(20), ..Retry::default() })).await;
    let claims = (0..11_u8).map(|n| Claim { signature: Digest::from_bytes([n; 32]), holder: vec![n; 100 << 20] });
    let batch = Batch::new(EpisodeId::new("e"), 0, vec![], vec![vec![1]]).claiming(claims.collect());
    let refused = store.commit(&batch).await.unwrap_err();
    let StoreError::Backend(error) = &refused else { panic!("{refused:?}") };
    assert!(matches!(error.downcast_ref(), Some(Error::TooLarge { .. })), "{error}");
}

/// Each message gives its advice once.
#[tokio::test]
async fn a_refusal_gives_its_advice_once() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let options = fresh(&address).await;
    let store = open(&options).await;
    by_hand(&address, &options).await.batch_execute(&format!("DROP SCHEMA {} CASCADE", named(&options))).await.unwrap();
    let refused = store.length(&EpisodeId::new("e")).await.unwrap_err().to_string();
    assert_eq!(refused.matches("run the step again").count(), 1, "{refused}");
}

#[test]
fn an_address_that_cannot_be_read_is_told_why() {
    for mode in ["verify-ca", "verify-full", "require"] {
        Options::new(&format!("postgres://a@h/d?sslmode={mode}")).unwrap();
    }
    let refused = Options::new("postgres://a@h/d?sslmode=maybe").unwrap_err().to_string();
    assert!(refused.contains("sslmode"), "{refused}");
}

/// A statement whose plan the server will not repeat is prepared anew.
#[tokio::test]
async fn a_changed_result_type_does_not_poison_a_connection() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let options = fresh(&address).await.connections(1);
    let store = open(&options).await;
    store.commit(&batch("e", 0)).await.unwrap();
    store.read(&EpisodeId::new("e"), 0, 9).await.unwrap();
    let client = by_hand(&address, &options).await;
    client.batch_execute("CREATE DOMAIN bytes AS bytea; ALTER TABLE log ALTER COLUMN record TYPE bytes").await.unwrap();
    let first = store.read(&EpisodeId::new("e"), 0, 9).await.map(drop);
    let second = store.read(&EpisodeId::new("e"), 0, 9).await;
    assert!(second.is_ok(), "first {first:?}, then {second:?}");
}

/// A bucket in which nobody may delete: no seal is said to be done while its object is there.
#[tokio::test]
async fn an_object_that_cannot_be_removed_is_told_with_its_cause() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let folder = tempfile::tempdir().unwrap();
    let options = fresh(&address).await;
    let local = LocalFileSystem::new_with_prefix(folder.path()).unwrap().with_fsync(true);
    let store = open(&options.clone().objects(Objects::new(Arc::new(local)).above(10))).await;
    let (blob, episode) = (Blob::new(vec![7; 100]), EpisodeId::new("e"));
    store.commit(&Batch::new(episode.clone(), 0, vec![blob.clone()], vec![vec![1]])).await.unwrap();
    let file = folder.path().join(named(&options)).join(blob.digest().to_string());
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    let seal = Batch::new(episode.clone(), 1, vec![], vec![vec![2]]).sealing(vec![*blob.digest()]);
    assert!(matches!(store.commit(&seal).await, Err(StoreError::Unacknowledged)));
    assert_eq!(store.length(&episode).await.unwrap(), 2, "the database has it");
    // Whoever asks whether it happened is told what is in the way, by every copy of the handle.
    for _ in 0..2 {
        let Err(StoreError::Backend(error)) = store.clone().read(&episode, 0, 9).await else { panic!("it is there") };
        let Some(Error::Unremoved { digest, .. }) = error.downcast_ref() else { panic!("{error}") };
        assert_eq!(digest, blob.digest());
    }
    std::fs::remove_dir(&file).unwrap();
    std::fs::write(&file, blob.bytes()).unwrap();
    assert_eq!(store.read(&episode, 0, 9).await.unwrap().len(), 2);
    assert!(!file.exists());
}

/// A pause of nothing is no flood.
#[tokio::test]
async fn without_a_pause_the_server_is_not_flooded() {
    let retry = Retry { first: Duration::ZERO, ..hasty() };
    let nobody = Options::new("postgres://keepspan@127.0.0.1:1/postgres?sslmode=disable").unwrap().retry(retry);
    let refused = PostgresStore::connect(nobody).await.unwrap_err();
    let Error::Unavailable { attempts, .. } = refused else { panic!("{refused}") };
    assert!(attempts < 50, "{attempts} attempts in half a second");
}

/// The window of somebody whose text was named without bytes.
#[tokio::test]
async fn a_window_externalizes_a_text_that_another_role_named() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let options = fresh(&address).await;
    let name = call("'x'", 0, "'{}'", &["ARRAY[sha256('users.id BIGINT')]", "ARRAY[NULL::bytea]"]);
    agent(&address, &options).await.batch_execute(&name).await.unwrap();
    let store = open(&options).await;
    let mut window = Window::<Agent, _>::open_async(store.clone(), Episode::new("e", "p"), ByteEstimate).await.unwrap();
    window.lanes().schema.push("users.id BIGINT").unwrap();
    let first = window.lanes().externalize().await.map(drop).map_err(|error| error.to_string());
    let again = window.lanes().externalize().await.map(drop).map_err(|error| error.to_string());
    assert!(first.is_ok() && again.is_ok(), "{first:?}\n{again:?}");
}

/// A pooler that loses the server says so in words of its own, without the field that `parsed_severity` reads; the commit
/// may have happened. PgBouncer: `FATAL: server conn crashed?`.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_pooler_says_of_a_lost_server_is_no_refusal() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let options = fresh(&address).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = address.split(['@', '/']).find(|part| part.contains("127.0.0.1:")).unwrap().to_owned();
    let through = address.replace(&server, &listener.local_addr().unwrap().to_string());
    let loses = Arc::new(AtomicBool::new(false));
    let (lost, other) = (loses.clone(), Arc::new(AtomicBool::new(false)));
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let (mut server, lost, other) = (TcpStream::connect(&server).await.unwrap(), lost.clone(), other.clone());
            tokio::spawn(async move {
                let (mut asked, mut told) = (vec![0; 1 << 16], vec![0; 1 << 16]);
                loop {
                    tokio::select! {
                        read = client.read(&mut asked) => {
                            let length = read.unwrap_or(0);
                            if length == 0 { return }
                            server.write_all(&asked[..length]).await.unwrap();
                        }
                        read = server.read(&mut told) => {
                            let length = read.unwrap_or(0);
                            if length == 0 { return }
                            if lost.swap(false, Ordering::SeqCst) {
                                // As PgBouncer 1.18 writes it, and by its class alone.
                                let fields = if other.fetch_xor(true, Ordering::SeqCst) {
                                    &b"SERROR\0C08006\0Mserver closed\0\0"[..]
                                } else {
                                    b"SFATAL\0C08P01\0Mserver conn crashed?\0\0"
                                };
                                let size = u32::try_from(fields.len() + 4).unwrap().to_be_bytes();
                                client.write_all(&[&b"E"[..], &size, fields].concat()).await.unwrap();
                                return;
                            }
                            client.write_all(&told[..length]).await.unwrap();
                        }
                    }
                }
            });
        }
    });
    let store = open(&Options::new(&through).unwrap().schema(named(&options)).unwrap()).await;
    store.commit(&batch("e", 0)).await.unwrap();
    for number in 1..3 {
        loses.store(true, Ordering::SeqCst);
        let committed = store.commit(&batch("e", number)).await;
        assert_eq!(store.length(&EpisodeId::new("e")).await.unwrap(), number + 1, "it happened");
        assert!(matches!(committed, Ok(()) | Err(StoreError::Unacknowledged)), "{}", committed.unwrap_err());
    }
}

/// A few months are a deadline too.
#[tokio::test]
async fn a_deadline_of_a_hundred_days_is_one() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let retry = Retry { deadline: Duration::from_secs(100 * 24 * 3_600), ..Retry::default() };
    let connected = timeout(Duration::from_secs(5), PostgresStore::connect(fresh(&address).await.retry(retry))).await;
    assert!(matches!(connected, Ok(Ok(_))), "{connected:?}");
}

/// "stores of two databases need a folder each, since a seal of one removes the object": each has one in its address, and
/// `folder`, "a folder within the store", throws that away.
#[cfg(feature = "s3")]
#[tokio::test]
async fn a_folder_is_within_that_of_the_address() {
    let (Some(address), Some(bucket)) = (server("KEEPSPAN_POSTGRES"), server("KEEPSPAN_S3")) else { return };
    let name = named(&schema(&address));
    let client = by_hand(&address, &schema(&address)).await;
    client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    let mut stores = Vec::new();
    for (database, team) in [("postgres", "team1"), (name.as_str(), "team2")] {
        let objects = Objects::open(&format!("{bucket}/{name}/{team}")).unwrap().folder("agents").above(10);
        let address = address.replace("/postgres?", &format!("/{database}?"));
        let options = Options::new(&address).unwrap().schema(name.clone()).unwrap().objects(objects);
        migrate(&options).await.unwrap();
        stores.push(open(&options).await);
    }
    let blob = Blob::new(vec![7; 100]);
    for store in &stores {
        store.commit(&Batch::new(EpisodeId::new("e"), 0, vec![blob.clone()], vec![vec![1]])).await.unwrap();
    }
    let seal = Batch::new(EpisodeId::new("e"), 1, vec![], vec![vec![2]]).sealing(vec![*blob.digest()]);
    stores[0].commit(&seal).await.unwrap();
    let other = stores[1].get_many(&[*blob.digest()]).await;
    assert_eq!(other.expect("the text of another database, in a folder of its own"), [blob.bytes()]);
}

/// As `a_refused_batch_brings_no_sealed_text_back`, for what is refused otherwise than by the log or a claim.
#[tokio::test]
async fn a_batch_that_is_refused_otherwise_brings_no_sealed_text_back() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let (options, memory) = (fresh(&address).await, Arc::new(InMemory::new()));
    let options = options.objects(Objects::new(memory.clone()).above(10));
    let (store, secret, other) = (open(&options).await, Blob::new(vec![1; 200]), Blob::new(vec![2; 200]));
    let seal = Batch::new(EpisodeId::new("e"), 0, vec![secret.clone()], vec![vec![1]]).sealing(vec![*secret.digest()]);
    store.commit(&seal).await.unwrap();
    let objects = async || store.verify().await.unwrap().orphans.len();
    assert_eq!(objects().await, 0);
    // The object store refuses another blob of it.
    let place = Path::from_iter([named(&options), other.digest().to_string()]);
    memory.put(&place, b"cut".to_vec().into()).await.unwrap();
    let both = Batch::new(EpisodeId::new("e"), 1, vec![secret.clone(), other], vec![vec![2]]);
    store.commit(&both).await.unwrap_err();
    memory.delete(&place).await.unwrap();
    let by_objects = objects().await;
    store.scrub().await.unwrap();
    // The database refuses it.
    let name = named(&options);
    agent(&address, &options)
        .await
        .batch_execute(&format!("RESET ROLE; REVOKE EXECUTE ON FUNCTION {name}.commit FROM agent_{name}"))
        .await
        .unwrap();
    let role =
        Options::new(&address.replace("keepspan@", &format!("agent_{name}@"))).unwrap().schema(name.clone()).unwrap();
    let role = open(&role.objects(Objects::new(memory.clone()).above(10))).await;
    role.commit(&Batch::new(EpisodeId::new("f"), 0, vec![secret.clone()], vec![vec![2]])).await.unwrap_err();
    assert_eq!((by_objects, objects().await), (0, 0), "sealed texts that are back");
}
