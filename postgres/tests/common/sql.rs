//! Questions to the database itself.

use keepspan::{
    ByteEstimate, ContextState, Digest, Episode, EpisodeId, Spans, Window,
    store::{AsyncStore as _, Batch, Claim},
};
use keepspan_postgres::{Options, PostgresStore};
use tokio_postgres::Client;

use super::{by_hand, named, open, schema};

pub const TABLES: [&str; 7] = ["log", "blobs", "claims", "departures", "lanes", "policies", "migrations"];

#[derive(ContextState)]
#[context(budget = 10_000)]
pub struct Agent {
    #[precondition(tools("describe_table"))]
    pub schema: Spans,
    #[evictable(otherwise)]
    pub work: Spans,
    #[derived]
    pub recap: Spans,
}

/// One row in every table.
pub async fn filled(options: &Options) -> PostgresStore {
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

pub async fn refused(client: &Client, statement: &str, code: &str) {
    let error = client.batch_execute(statement).await.expect_err(statement);
    assert_eq!(error.code().map(|code| code.code()), Some(code), "{statement}: {error}");
}

pub async fn rows(client: &Client, table: &str) -> i64 {
    client.query_one(&format!("SELECT count(*) FROM {table}"), &[]).await.unwrap().get(0)
}

pub async fn first_column(client: &Client, table: &str) -> String {
    let query = "SELECT attname::text FROM pg_attribute WHERE attrelid = $1::text::regclass AND attnum = 1";
    client.query_one(query, &[&table]).await.unwrap().get(0)
}

/// Makes a role with the grants of the README for whoever commits, and no more.
pub async fn role(client: &Client, schema: &str) -> String {
    let role = format!("agent_{schema}");
    let grants = format!(
        "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {schema} TO {role}; \
         GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}; GRANT EXECUTE ON FUNCTION {schema}.commit TO {role}"
    );
    client.batch_execute(&grants).await.unwrap();
    role
}

/// A store that the first version of the tables was in use for, by a role that commits.
pub async fn of_version_1(address: &str) -> (Options, Client) {
    let options = schema(address);
    let (client, name) = (by_hand(address, &options).await, named(&options));
    let tables = include_str!("../../migrations/0001_store.sql");
    let create = format!(
        "CREATE SCHEMA {name}; SET search_path = {name}, pg_temp; \
         CREATE TABLE migrations (version integer PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now()); \
         {tables}; INSERT INTO migrations (version) VALUES (1)"
    );
    client.batch_execute(&create).await.unwrap();
    role(&client, &name).await;
    (options, client)
}
