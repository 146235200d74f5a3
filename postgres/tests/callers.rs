//! What a caller may do and say, and what it is told.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

mod common;

use common::{
    by_hand, fresh, named, open, schema, server,
    sql::{TABLES, filled, first_column, of_version_1, refused, role, rows},
};
use keepspan::{
    Digest, EpisodeId,
    store::{AsyncStore as _, Batch, Blob, StoreError, fetch},
};
use keepspan_postgres::{Error, Options, PostgresStore, VERSION, migrate};

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
    for function in ["commit", "commit_sealing"] {
        refused(&client, &call(function, "0", ["'{}'"; 3]), "42501").await;
    }
}

/// A call of a function by hand: of an episode at a length, with one record, and then what is told.
fn call(function: &str, expected: &str, [digests, contents, seals]: [&str; 3]) -> String {
    let rest = vec!["'{}'"; 19].join(", ");
    format!("SELECT {function}('e', {expected}, 'a', ARRAY['r'::bytea], {digests}, {contents}, {seals}, {rest})")
}

/// With the grants of the README a role takes no bytes away, and leaves none where others' are to be.
#[tokio::test]
async fn a_role_that_may_commit_can_do_no_harm_to_the_texts_of_others() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let options = fresh(&address).await;
    let (client, name) = (by_hand(&address, &options).await, named(&options));
    let role = role(&client, &name).await;
    client.batch_execute(&format!("SET ROLE {role}")).await.unwrap();
    let [none, digest] = ["'{}'", "ARRAY[sha256('mine')]"];
    for (statement, code) in [
        (call("commit", "0", [digest, "ARRAY['yours'::bytea]", none]), "23514"),
        (call("commit", "0", ["ARRAY['short'::bytea]", "ARRAY[NULL::bytea]", none]), "23514"),
        (call("commit", "0", [none, none, digest]), "KS004"),
        (call("commit_sealing", "0", [none, none, digest]), "42501"),
        (call("commit", "1", [none, none, none]), "KS001"),
    ] {
        refused(&client, &statement, code).await;
    }
    // What would compare with nothing.
    for statement in [call("commit", "NULL", [none, none, none]), call("commit", "0", ["NULL", none, none])] {
        assert!(client.query_one(&statement, &[]).await.unwrap().get::<_, Option<Vec<Vec<u8>>>>(0).is_none());
    }
    for table in ["log", "blobs"] {
        assert_eq!(rows(&client, table).await, 0, "{table}");
    }
    client.batch_execute(&call("commit", "0", [digest, "ARRAY['mine'::bytea]", none])).await.unwrap();
    for table in ["log", "blobs"] {
        assert_eq!(rows(&client, table).await, 1, "{table}");
    }
    client.batch_execute("RESET ROLE").await.unwrap();
    client.batch_execute(&call("commit_sealing", "1", [none, none, digest])).await.unwrap();
    let sealed = open(&options).await.get_many(&[Digest::of(b"mine")]).await;
    assert!(matches!(sealed, Err(StoreError::Sealed { .. })), "{sealed:?}");
}

/// What stands in the way is told, and not that there is no store.
#[tokio::test]
async fn a_role_without_grants_is_told_so() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let (options, none) = (fresh(&address).await, schema(&address));
    let (client, name) = (by_hand(&address, &options).await, named(&options));
    let role = format!("agent_{name}");
    client.batch_execute(&format!("CREATE ROLE {role} LOGIN")).await.unwrap();
    let as_role = |name: String| {
        let address = address.replace("keepspan@", &format!("{role}@"));
        PostgresStore::connect(Options::new(&address).unwrap().schema(name).unwrap())
    };
    for (grant, told) in [
        ("".to_owned(), "permission denied for schema"),
        (format!("GRANT USAGE ON SCHEMA {name} TO {role}"), "permission denied for table migrations"),
    ] {
        client.batch_execute(&grant).await.unwrap();
        let refused = as_role(name.clone()).await.unwrap_err();
        assert!(matches!(refused, Error::Server(_)) && refused.to_string().contains(told), "{refused}");
    }
    let refused = as_role(named(&none)).await.unwrap_err();
    assert!(matches!(&refused, Error::NoStore { schema } if *schema == named(&none)), "{refused}");
}

/// Each new connection is checked, one after a check that failed too.
#[tokio::test]
async fn a_connection_that_could_not_be_checked_is_not_used() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let options = fresh(&address).await;
    let (client, name) = (by_hand(&address, &options).await, named(&options));
    let role = format!("agent_{name}");
    let grants =
        format!("GRANT USAGE ON SCHEMA {name} TO {role}; GRANT SELECT ON ALL TABLES IN SCHEMA {name} TO {role}");
    client.batch_execute(&format!("CREATE ROLE {role} LOGIN; {grants}")).await.unwrap();
    let as_role = Options::new(&address.replace("keepspan@", &format!("{role}@"))).unwrap();
    let store = open(&as_role.schema(&*name).unwrap().connections(1)).await;
    let asked = async || match store.length(&EpisodeId::new("e")).await {
        Ok(length) => Ok(length),
        Err(StoreError::Backend(error)) => Err(error.to_string()),
        Err(other) => panic!("{other:?}"),
    };
    assert_eq!(asked().await, Ok(0));
    let end = format!("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = '{role}'");
    assert_eq!(client.query_one(&end, &[]).await.unwrap().get::<_, i64>(0), 1);
    client.batch_execute(&format!("REVOKE SELECT ON migrations FROM {role}")).await.unwrap();
    for _ in 0..2 {
        assert!(asked().await.is_err_and(|error| error.contains("permission denied for table migrations")));
    }
    client.batch_execute(&format!("{grants}; INSERT INTO migrations (version) VALUES ({VERSION} + 1)")).await.unwrap();
    assert!(asked().await.is_err_and(|error| error.contains("use the newer library")));
}

#[tokio::test]
async fn a_database_of_another_encoding_is_refused() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let options = schema(&address);
    let database = named(&options);
    let client = by_hand(&address, &options).await;
    let create = format!("CREATE DATABASE {database} ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'");
    client.batch_execute(&create).await.unwrap();
    let options = Options::new(&address.replace("/postgres?", &format!("/{database}?"))).unwrap();
    let refused = migrate(&options).await.unwrap_err();
    assert!(matches!(&refused, Error::Encoding { found } if found == "LATIN1"), "{refused}");
    client.batch_execute(&format!("DROP DATABASE {database}")).await.unwrap();
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
        let later = later.unwrap_err();
        assert!(matches!(later, Error::Version { found, .. } if found == VERSION + 1), "{later:?}");
        assert!(later.to_string().ends_with("use the newer library that wrote it"), "{later}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_of_the_version_before_is_brought_up_to_date() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let (text, wrong, episode) = (Blob::new(b"users.id BIGINT".to_vec()), Digest::of(b"right"), EpisodeId::new("e"));
    let (options, client) = of_version_1(&address).await;
    let commit = call("commit", "0", ["ARRAY[$1::bytea, $3]", "ARRAY[$2::bytea, 'wrong']", "'{}'"]);
    let digests = [text.digest().as_bytes(), wrong.as_bytes()].map(|digest| &digest[..]);
    client.query(&commit, &[&digests[0], &text.bytes(), &digests[1]]).await.unwrap();
    let before = PostgresStore::connect(options.clone()).await.unwrap_err();
    assert!(matches!(before, Error::Version { found: 1, supported: VERSION, .. }));
    assert!(before.to_string().ends_with("run `keepspan migrate` once, or `keepspan_postgres::migrate`"), "{before}");
    let at_once = [migrate(&options), migrate(&options)];
    let mut before = futures_util::future::try_join_all(at_once).await.unwrap();
    before.sort_unstable();
    assert_eq!(before, [1, VERSION]);
    // What was there is there, and what was wrong is found where it is read.
    let role = format!("agent_{}", named(&options));
    let agent = Options::new(&address.replace("keepspan@", &format!("{role}@"))).unwrap();
    let store = open(&agent.schema(named(&options)).unwrap()).await;
    assert_eq!(fetch(&store, &[*text.digest()]).await.unwrap(), [text.bytes()]);
    let found = fetch(&store, &[wrong]).await;
    assert!(matches!(found, Err(StoreError::Corrupt { digest }) if digest == wrong), "{found:?}");
    // Its grants are still good, and what is new holds.
    store.commit(&Batch::new(episode.clone(), 1, vec![text], vec![vec![2]])).await.unwrap();
    let seal = Batch::new(episode.clone(), 2, vec![], vec![vec![3]]).sealing(vec![wrong]);
    let refused = store.commit(&seal).await.unwrap_err();
    assert!(matches!(refused, StoreError::Backend(_)), "{refused:?}");
    client.batch_execute(&format!("GRANT EXECUTE ON FUNCTION commit_sealing TO {role}")).await.unwrap();
    store.commit(&seal).await.unwrap();
    assert_eq!(store.length(&episode).await.unwrap(), 3);
}
