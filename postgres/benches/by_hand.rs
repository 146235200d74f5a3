//! The store beside the same rows sent by hand, in one statement, on the same server.
//!
//! `eval "$(scripts/servers start postgres)"; cargo bench -p keepspan-postgres`, and with `-- alike` beside tables by hand that
//! are compressed as the store's are.
#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::{
    env,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant, SystemTime},
};

use keepspan::{
    Digest, EpisodeId,
    store::{AsyncStore as _, Batch, Blob},
};
use keepspan_postgres::{Options, PostgresStore, migrate};
use tokio_postgres::{Client, NoTls, Statement};

const SPANS: usize = 50;
const BYTES: usize = 4_096;
const ROUNDS: usize = 300;
const AGENTS: usize = 16;

/// Spans that nobody has put yet.
fn turn() -> Vec<Blob> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let span = || {
        let mut state = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ *SEED;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            b"etaoin shrdlu cmfwypvbgkjqxz.,\n"[usize::try_from(state >> 59).unwrap() % 31]
        };
        Blob::new((0..BYTES).map(|_| next()).collect::<Vec<u8>>())
    };
    (0..SPANS).map(|_| span()).collect()
}

static SEED: std::sync::LazyLock<u64> = std::sync::LazyLock::new(|| {
    u64::try_from(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos()).unwrap() | 1
});

/// The record of a commit of [`SPANS`] spans takes some 60 bytes each.
fn record() -> Vec<u8> {
    vec![0; 60 * SPANS]
}

struct ByHand {
    client: Client,
    commit: Statement,
    one: Statement,
    many: Statement,
}

impl ByHand {
    async fn connect(address: &str, schema: &str, alike: bool) -> Self {
        let (client, connection) = tokio_postgres::connect(address, NoTls).await.unwrap();
        tokio::spawn(connection);
        // Tables of its own, without a check or a trigger; compressed as the server does by default, or as the store's.
        let tables = "CREATE TABLE IF NOT EXISTS hand_blobs (digest bytea PRIMARY KEY, bytes bytea); \
                      CREATE TABLE IF NOT EXISTS hand_log (episode bytea, number bigint, record bytea, PRIMARY KEY (episode, number))";
        client.batch_execute(&format!("SET search_path = {schema}; {tables}")).await.unwrap();
        if alike {
            let alike = "ALTER TABLE hand_blobs ALTER COLUMN bytes SET COMPRESSION lz4";
            client.batch_execute(alike).await.unwrap();
        }
        let commit = "WITH put AS (INSERT INTO hand_blobs (digest, bytes) SELECT * FROM unnest($1::bytea[], $2::bytea[]) \
                      ON CONFLICT DO NOTHING) INSERT INTO hand_log (episode, number, record) VALUES ($3, $4, $5)";
        let commit = client.prepare(commit).await.unwrap();
        let one = client.prepare("SELECT bytes FROM blobs WHERE digest = $1").await.unwrap();
        let many = client.prepare("SELECT digest, bytes FROM blobs WHERE digest = ANY ($1)").await.unwrap();
        Self { client, commit, one, many }
    }

    async fn commit(&self, episode: &str, number: u64, blobs: &[Blob]) {
        let (digests, bytes): (Vec<_>, Vec<_>) =
            blobs.iter().map(|blob| (&blob.digest().as_bytes()[..], blob.bytes())).unzip();
        let number = i64::try_from(number).unwrap();
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
            [&digests, &bytes, &episode.as_bytes(), &number, &record()];
        self.client.execute(&self.commit, &values).await.unwrap();
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn say(what: &str, ours: Duration, theirs: Duration) {
    let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
    println!("{what:<36} store {ours:>9.1?}   by hand {theirs:>9.1?}   {ratio:.2} times");
}

#[tokio::main]
async fn main() {
    let Ok(address) = env::var("KEEPSPAN_POSTGRES") else {
        println!("skipped: KEEPSPAN_POSTGRES is not set; `eval \"$(scripts/servers start postgres)\"` starts a server");
        return;
    };
    let schema = format!("bench_{}", *SEED);
    let options = Options::new(&address).unwrap().schema(&*schema).unwrap();
    migrate(&options).await.unwrap();
    let store = PostgresStore::connect(options).await.unwrap();
    let alike = env::args().any(|argument| argument == "alike");
    let hand = ByHand::connect(&address, &schema, alike).await;

    // Turn and turn about, so that both meet the same table and the same machine.
    let (mut ours, mut theirs, mut digests) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..u64::try_from(ROUNDS).unwrap() {
        let batch = Batch::new(EpisodeId::new("ours"), number, turn(), vec![record()]);
        let begun = Instant::now();
        store.commit(&batch).await.unwrap();
        ours.push(begun.elapsed());
        digests.extend(batch.blobs().iter().map(|blob| *blob.digest()));
        let blobs = turn();
        let begun = Instant::now();
        hand.commit("theirs", number, &blobs).await;
        theirs.push(begun.elapsed());
    }
    say("commit of 50 spans of 4 KiB", median(ours), median(theirs));

    for (what, at_once) in [("recall of 1 span", 1), ("recall of 50 spans", SPANS)] {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for (round, asked) in digests.chunks(at_once).take(ROUNDS * 5).enumerate() {
            // Each is the first one to touch the rows every other time.
            for store_first in [round % 2 == 0, round % 2 == 1] {
                let begun = Instant::now();
                if store_first {
                    assert_eq!(store.get_many(asked).await.unwrap().len(), at_once);
                    ours.push(begun.elapsed());
                } else {
                    assert_eq!(raw(&hand, asked).await, at_once);
                    theirs.push(begun.elapsed());
                }
            }
        }
        say(what, median(ours), median(theirs));
    }

    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let mut hands = Vec::new();
    for _ in 0..AGENTS {
        hands.push(std::sync::Arc::new(ByHand::connect(&address, &schema, alike).await));
    }
    for round in 0..5_u32 {
        ours.push(
            at_once(|agent, number, blobs| {
                let store = store.clone();
                async move {
                    let episode = EpisodeId::new(format!("ours {round} {agent}"));
                    store.commit(&Batch::new(episode, number, blobs, vec![record()])).await.unwrap();
                }
            })
            .await,
        );
        theirs.push(
            at_once(|agent, number, blobs| {
                let hand = hands[agent].clone();
                async move { hand.commit(&format!("theirs {round} {agent}"), number, &blobs).await }
            })
            .await,
        );
    }
    let (ours, theirs) = (median(ours), median(theirs));
    say("16 agents, 20 commits of 50 each", ours, theirs);
    let spans = f64::from(u32::try_from(AGENTS * 20 * SPANS).unwrap());
    println!("{:.0} spans a second", spans / ours.as_secs_f64());
    // A gigabyte.
    hand.client.batch_execute(&format!("DROP SCHEMA {schema} CASCADE")).await.unwrap();
}

/// How many of these the raw query finds, copied out as the store does.
async fn raw(hand: &ByHand, asked: &[Digest]) -> usize {
    let digests: Vec<_> = asked.iter().map(|digest| &digest.as_bytes()[..]).collect();
    match digests.as_slice() {
        [digest] => {
            let row = hand.client.query_one(&hand.one, &[digest]).await.unwrap();
            usize::from(row.get::<_, Vec<u8>>(0).len() == BYTES)
        }
        _ => {
            let rows = hand.client.query(&hand.many, &[&digests]).await.unwrap();
            rows.iter().map(|row| row.get::<_, Vec<u8>>(1)).filter(|bytes| bytes.len() == BYTES).count()
        }
    }
}

/// How long the agents take together for 20 commits each.
async fn at_once<F: Future<Output = ()> + Send + 'static>(commit: impl Fn(usize, u64, Vec<Blob>) -> F) -> Duration {
    let work: Vec<Vec<_>> =
        (0..AGENTS).map(|agent| (0..20).map(|number| commit(agent, number, turn())).collect()).collect();
    let begun = Instant::now();
    let agents: Vec<_> = work
        .into_iter()
        .map(|commits| {
            tokio::spawn(async move {
                for commit in commits {
                    commit.await;
                }
            })
        })
        .collect();
    for agent in agents {
        agent.await.unwrap();
    }
    begun.elapsed()
}
