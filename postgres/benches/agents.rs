//! How many agents one server carries, each with a span a second: raises their number until commits come late.
//!
//! `eval "$(scripts/servers start postgres)"; cargo bench -p keepspan-postgres --bench agents`
#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::{
    env,
    time::{Duration, SystemTime},
};

use keepspan::{
    EpisodeId,
    store::{AsyncStore as _, Batch, Blob},
};
use keepspan_postgres::{Options, PostgresStore, migrate};
use tokio::time::{Instant, sleep_until};
use tokio_postgres::NoTls;

/// A short tool result, and the record of its commit.
const BYTES: usize = 1_024;
const RECORD: usize = 150;
const SECONDS: u32 = 20;

/// What [`BYTES`] of text of one span look like, which no other has.
fn span(episode: &EpisodeId, number: u64) -> Blob {
    let line = |n| format!("{episode} {number} {n}: users.id BIGINT NOT NULL; 17 rows in 0.3 s\n");
    let text: String = (0..).map(line).take(20).collect();
    Blob::new(text.into_bytes().into_iter().cycle().take(BYTES).collect::<Vec<u8>>())
}

/// How late each commit of an agent was acknowledged, of one that is due each second.
async fn agent(store: PostgresStore, episode: EpisodeId, begins: Instant) -> Vec<Duration> {
    let mut late = Vec::new();
    for number in 0..u64::from(SECONDS) {
        let due = begins + Duration::from_secs(number);
        sleep_until(due).await;
        let batch = Batch::new(episode.clone(), number, vec![span(&episode, number)], vec![vec![0; RECORD]]);
        store.commit(&batch).await.unwrap();
        late.push(due.elapsed());
    }
    late
}

#[tokio::main]
async fn main() {
    let Ok(address) = env::var("KEEPSPAN_POSTGRES") else {
        println!("skipped: KEEPSPAN_POSTGRES is not set; `eval \"$(scripts/servers start postgres)\"` starts a server");
        return;
    };
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos();
    let schema = format!("agents_{since}");
    let options = Options::new(&address).unwrap().schema(&*schema).unwrap().connections(32);
    migrate(&options).await.unwrap();
    let store = PostgresStore::connect(options).await.unwrap();
    for agents in [100, 1_600, 3_200, 6_400, 8_000, 10_000, 12_000_u32] {
        let begins = Instant::now() + Duration::from_millis(200);
        let all: Vec<_> = (0..agents)
            .map(|number| {
                let begins = begins + Duration::from_secs(1) * number / agents;
                tokio::spawn(agent(store.clone(), EpisodeId::new(format!("{agents} {number}")), begins))
            })
            .collect();
        let mut late = Vec::new();
        for agent in all {
            late.extend(agent.await.unwrap());
        }
        late.sort_unstable();
        let at = |percent: usize| late[(late.len() - 1) * percent / 100];
        println!("{agents:>5} agents: half within {:>8.1?}, 99 of 100 within {:>8.1?}", at(50), at(99));
        if at(99) > Duration::from_secs(1) {
            break;
        }
    }
    sizes(&address, &schema).await;
    let (client, connection) = tokio_postgres::connect(&address, NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(&format!("DROP SCHEMA {schema} CASCADE")).await.unwrap();
}

/// What a span takes in the tables, with their indexes.
async fn sizes(address: &str, schema: &str) {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("CREATE EXTENSION IF NOT EXISTS pageinspect").await.unwrap();
    client.batch_execute(&format!("SET search_path = {schema}, public; ANALYZE log, blobs")).await.unwrap();
    for table in ["log", "blobs"] {
        let query = format!(
            "SELECT count(*), pg_total_relation_size('{table}'), pg_indexes_size('{table}'), \
             (SELECT level FROM bt_metap('{table}_pkey')) + 1 FROM {table}"
        );
        let row = client.query_one(&query, &[]).await.unwrap();
        let (rows, bytes, index, levels): (i64, i64, i64, i64) = (row.get(0), row.get(1), row.get(2), row.get(3));
        println!("{table}: {rows} rows, {} bytes a row, {} of them index; {levels} levels", bytes / rows, index / rows);
    }
}
