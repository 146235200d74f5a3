//! What a permit costs beside the engine's own work, and a signature beside one SHA-256. Medians.
//! `cargo bench -p keepspan-tests --bench action`

mod timing;

use std::{hint::black_box, sync::Arc, time::Duration};

use keepspan::{
    Action, ContextState, Digest, Episode, EpisodeId, Failure, NewSpan, Signature, Spans, Window,
    store::{Batch, Blob, Claim, EmbeddedStore, MemoryStore, Store},
};

use self::timing::{interleave, time};

#[derive(ContextState)]
struct Agent {
    #[precondition(tools("describe"))]
    schema: Spans,
    #[scope_qualifier]
    target: Spans,
    #[evictable(otherwise)]
    work: Spans,
}

#[derive(Action)]
#[action(state = Agent, requires(schema, target))]
struct Alter {
    table: String,
    number: u64,
}

/// A request of 1 KB in ten fields.
#[derive(Action)]
#[action(state = Agent, requires(schema))]
struct Large {
    a: String,
    b: String,
    c: String,
    d: String,
    e: String,
    f: u64,
    g: bool,
    h: Option<String>,
    i: Vec<String>,
    j: i32,
}

const SPANS: usize = 100_000;
const SIGNATURES: u64 = 1_000_000;

fn main() {
    println!(
        "| permit among {SPANS} spans and {SIGNATURES} signatures | required spans | keepspan | engine alone | beside it |"
    );
    println!("| --- | ---: | ---: | ---: | ---: |");
    let folder = tempfile::tempdir().unwrap();
    for required in [2, 20, 200] {
        let path = folder.path().join(required.to_string());
        on("file", required, Arc::new(EmbeddedStore::open(&path).unwrap()));
        std::fs::remove_file(path).unwrap();
    }
    on("memory", 20, Arc::new(MemoryStore::new()));
    signature();
}

/// Asks for a permit, and for one and its run, of requests that nobody made before.
fn on<S: Store>(name: &str, required: usize, store: Arc<S>) {
    fill(&*store);
    let mut window = Window::<Agent, _>::open(store.clone(), Episode::new("agent", "p")).unwrap();
    let lanes = window.lanes();
    for n in 0..SPANS {
        lanes.work.push(format!("span {n}")).unwrap();
    }
    for n in 0..required / 2 {
        lanes.schema.push(NewSpan::tool("describe", format!("column {n} BIGINT"))).unwrap();
        lanes.target.push(NewSpan::human(format!("staging {n}"))).unwrap();
    }
    drop(lanes.externalize().wait().unwrap());
    let next = std::cell::Cell::new(0_u64);
    let action = || {
        next.set(next.get() + 1);
        Alter { table: "users".to_owned(), number: next.get() }
    };
    let unseen = || Digest::of(action().signature().to_string().as_bytes());
    let lookup = || {
        let digest = unseen();
        time(|| store.holders(&[digest]).unwrap())
    };
    let permit = || {
        let action = action();
        time(|| black_box(window.permit(&action).unwrap().fresh().unwrap().attempt()))
    };
    let [ours, engine] = interleave(2_001, permit, lookup);
    println!("| {name}: permit | {required} | {ours:.1} us | {engine:.1} us | {:.1} us |", ours - engine);
    let bare = EpisodeId::new("bare");
    let length = std::cell::Cell::new(0_u64);
    let outcome = Blob::new("done");
    let write = |blobs: Vec<Blob>| {
        let claim = Claim { signature: unseen(), holder: vec![0; 90] };
        let batch = Batch::new(bare.clone(), length.get(), blobs, vec![vec![1; 150]]).claiming(vec![claim]);
        length.set(length.get() + 1);
        batch
    };
    let by_hand = || {
        let (first, second, digest) = (write(vec![]), write(vec![outcome.clone()]), unseen());
        time(|| {
            store.holders(&[digest]).unwrap();
            store.commit(&first).unwrap();
            store.commit(&second).unwrap();
            store.get_many(&[*outcome.digest()]).unwrap();
        })
    };
    let run = || {
        let action = action();
        time(|| {
            let permit = window.permit(&action).unwrap().fresh().unwrap();
            permit.run(|_| Ok::<_, Failure>("done")).unwrap()
        })
    };
    let rounds = if name == "file" { 301 } else { 2_001 };
    let [ours, engine] = interleave(rounds, run, by_hand);
    println!("| {name}: permit and run | {required} | {ours:.1} us | {engine:.1} us | {:.1} us |", ours - engine);
}

/// A million signatures on record.
fn fill<S: Store>(store: &S) {
    let episode = EpisodeId::new("filler");
    const EACH: u64 = 20_000;
    for batch in 0..SIGNATURES / EACH {
        let claim = |n: u64| Claim { signature: Digest::of(&(batch * EACH + n).to_be_bytes()), holder: vec![7; 60] };
        let claims = (0..EACH).map(claim).collect();
        store.commit(&Batch::new(episode.clone(), batch, vec![], vec![vec![1]]).claiming(claims)).unwrap();
    }
}

fn signature() {
    let text = |n: usize| "abcdefghij klmnop ".chars().cycle().take(n).collect::<String>();
    let large = Large {
        a: text(300),
        b: text(200),
        c: text(150),
        d: text(100),
        e: text(100),
        f: 7,
        g: true,
        h: Some(text(60)),
        i: vec![text(40), text(40)],
        j: -1,
    };
    let bytes = text(1_024);
    const TIMES: u32 = 1_000;
    let many = |work: &dyn Fn()| -> Duration { time(|| (0..TIMES).for_each(|_| work())) / TIMES };
    let sign = || {
        many(&|| {
            black_box(black_box(&large).signature());
        })
    };
    let hash = || {
        many(&|| {
            black_box(Digest::of(black_box(bytes.as_bytes())));
        })
    };
    let [ours, sha] = interleave(201, sign, hash);
    println!("\n| signature of a request of 1 KB | one SHA-256 of 1,024 bytes | ratio |\n| ---: | ---: | ---: |");
    println!("| {ours:.2} us | {sha:.2} us | {:.2} |", ours / sha);
    let call = serde_json::json!({ "a": text(300), "b": text(200), "c": text(150), "d": text(100), "e": text(274) });
    let sign = || {
        many(&|| {
            black_box(Signature::of("call", black_box(&call)));
        })
    };
    let [ours, sha] = interleave(201, sign, hash);
    println!("| as JSON: {ours:.2} us | {sha:.2} us | {:.2} |", ours / sha);
}
