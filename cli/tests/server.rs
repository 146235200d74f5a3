//! Each command on a store in a database says what it says of the same store in a file.
#![cfg(feature = "postgres")]
#![allow(clippy::indexing_slicing, reason = "a test may panic")]

mod common;

use std::{env, sync::Arc, time::SystemTime};

use common::{Migration, Outcome, Ran, keepspan};
use keepspan::{Episode, Mutation, NewSpan, SpanId, Window, store::Store};
use keepspan_postgres::{Blocking, Objects, Options};
use serde_json::Value;

/// The servers, and a schema and a folder of the test's own.
struct Server {
    address: String,
    schema: String,
    blobs: String,
}

impl Server {
    fn find() -> Option<Self> {
        let (Ok(address), Ok(blobs)) = (env::var("KEEPSPAN_POSTGRES"), env::var("KEEPSPAN_S3")) else {
            println!(
                "skipped: KEEPSPAN_POSTGRES and KEEPSPAN_S3 are not set; `eval \"$(scripts/servers start)\"` starts the servers"
            );
            return None;
        };
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let schema = format!("cli_{}", since.as_nanos());
        Some(Self { address, blobs: format!("{blobs}/{schema}"), schema })
    }

    fn options(&self, above: usize) -> Outcome<Options> {
        let objects = Objects::open(&self.blobs)?.above(above);
        Ok(Options::new(&self.address)?.schema(&*self.schema)?.objects(objects))
    }

    /// Runs `keepspan COMMAND ADDRESS ARGS`.
    fn run(&self, command: &str, args: &[&str]) -> Outcome<Ran> {
        let place = [command, &self.address, "--schema", &self.schema, "--blobs", &self.blobs];
        keepspan(place.iter().chain(args).copied())
    }
}

/// The same in every store.
fn fill(store: Arc<dyn Store>) -> Outcome<[SpanId; 2]> {
    let mut window = Window::<Migration, _>::open(store, Episode::new("migrate-42", "policy-1"))?;
    let lanes = window.lanes();
    lanes.route(NewSpan::human("Migrate users.id"))?;
    let schema = lanes.route(NewSpan::tool("describe_table", format!("users.id BIGINT{}", " ".repeat(3_000))))?;
    let key = lanes.route(NewSpan::tool("env", "API_KEY=sk-test-000 ".repeat(100)))?;
    lanes.route(NewSpan::model("It is a BIGINT."))?;
    lanes.externalize().wait()?.schema.evict(schema).wait()?;
    window.lanes().work.redact(key, Mutation::new("a leaked key", "ask the vault for a new one")?).wait()?;
    window.lanes().route(NewSpan::model("Done."))?;
    drop(window.lanes().externalize().wait()?);
    Ok([schema, key])
}

/// Without the times.
fn told(ran: &Ran) -> Outcome<Vec<Value>> {
    fn clear(value: &mut Value) {
        match value {
            Value::Array(values) => values.iter_mut().for_each(clear),
            Value::Object(fields) => {
                fields.retain(|name, _| !["time", "began", "last", "store", "chain"].contains(&name.as_str()));
                fields.values_mut().for_each(clear);
            }
            _ => {}
        }
    }
    let mut values = ran.json()?;
    values.iter_mut().for_each(clear);
    Ok(values)
}

#[test]
fn a_store_in_a_database_is_read_as_one_in_a_file() -> Outcome {
    let Some(server) = Server::find() else { return Ok(()) };
    let none = server.run("log", &[])?;
    assert!(none.code == Some(3) && none.err.contains("has no store: run `keepspan migrate` once"), "{}", none.err);
    for said in ["created, version", "up to date, version"] {
        let migrated = server.run("migrate", &[])?;
        assert!(migrated.code == Some(0) && migrated.out.contains(said), "{migrated:?}");
    }
    let empty = server.run("verify", &[])?;
    assert!(empty.code == Some(2) && empty.err.contains("has no episode yet"), "{}", empty.err);
    assert!(empty.err.contains(&server.schema) && !empty.err.contains("keepspan@"), "{}", empty.err);

    let folder = tempfile::tempdir()?;
    let file = folder.path().join("run.db");
    let [schema, _] = fill(Arc::new(Blocking::connect(server.options(1_000)?)?))?;
    fill(Arc::new(keepspan::store::open(&file)?))?;
    let file = file.to_str().ok_or("a name")?;
    let span = schema.to_string();
    for (command, args) in [
        ("episodes", vec!["--json"]),
        ("log", vec!["--json"]),
        ("actions", vec!["--json"]),
        ("at", vec!["2", "--json"]),
        ("show", vec![&span, "--json"]),
        ("tombstone", vec![&span, "--json"]),
        ("export", vec!["--json"]),
        ("report", vec!["--with-text", "--json"]),
    ] {
        let here = keepspan([command, file].iter().chain(&args).copied())?;
        let there = server.run(command, &args)?;
        assert_eq!(told(&there)?, told(&here)?, "{command}");
        assert_eq!((there.code, here.code), (Some(0), Some(0)), "{command}: {there:?}");
    }
    let recalled = server.run("recall", &[&span])?;
    assert!(recalled.out.starts_with("users.id BIGINT") && recalled.out.len() > 3_000, "{recalled:?}");
    Ok(())
}

#[test]
fn verify_asks_the_object_store_too() -> Outcome {
    let Some(server) = Server::find() else { return Ok(()) };
    server.run("migrate", &[])?;
    let store = Arc::new(Blocking::connect(server.options(1_000)?)?);
    fill(store.clone())?;
    let fine = server.run("verify", &[])?;
    assert!(fine.code == Some(0) && fine.out.contains("objects: 1 there; each is named"), "{fine:?}");
    // What a refused commit leaves is no fault.
    let blob = keepspan::store::Blob::new(vec![7; 2_000]);
    let batch =
        keepspan::store::Batch::new(keepspan::EpisodeId::new("migrate-42"), 0, vec![blob.clone()], vec![vec![1]]);
    assert!(store.commit(&batch).is_err());
    let orphan = server.run("verify", &[])?;
    let line = format!("orphan {}, 2,000 bytes, since 20", blob.digest());
    assert!(orphan.code == Some(0) && orphan.out.contains(&line), "{orphan:?}");
    // Other objects than those of this store: its own are not there.
    let elsewhere = format!("{}/elsewhere", server.blobs);
    let place = ["verify", &*server.address, "--schema", &server.schema, "--blobs", &elsewhere];
    let lost = keepspan(place)?;
    assert!(lost.code == Some(1) && lost.out.contains("is not there: its text is lost"), "{lost:?}");
    Ok(())
}

#[test]
fn a_file_needs_no_migration() -> Outcome {
    let refused = keepspan(["migrate", "run.db"])?;
    assert!(refused.code == Some(2) && refused.err.contains("a file needs no migration"), "{refused:?}");
    let wrong = keepspan(["log", "postgres://me:secret@localhost:port/db"])?;
    assert!(wrong.code == Some(3) && !wrong.err.contains("secret"), "{wrong:?}");
    Ok(())
}
