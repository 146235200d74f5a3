//! Every store runs the same suite, and a window on the embedded file keeps what it says.

use std::{
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use keepspan::{
    Episode, EpisodeId, OpenError, Window,
    store::{self, MemoryStore, Store, StoreError, conformance},
};
use keepspan_tests::{Agent, Faulty};

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[test]
fn the_memory_store_conforms() -> Outcome {
    Ok(conformance::check(MemoryStore::new)?)
}

#[test]
fn a_shared_store_conforms() -> Outcome {
    Ok(conformance::check(|| Arc::new(MemoryStore::new()))?)
}

#[test]
fn the_test_suites_own_store_conforms_while_it_is_told_nothing() -> Outcome {
    Ok(conformance::check(Faulty::default)?)
}

#[test]
fn the_embedded_store_conforms_as_both_traits() -> Outcome {
    let folder = tempfile::tempdir()?;
    let number = AtomicUsize::new(0);
    let open = || {
        let name = format!("{}.db", number.fetch_add(1, Ordering::Relaxed));
        store::open(folder.path().join(name)).expect("a new file opens")
    };
    conformance::check(open)?;
    Ok(futures_lite::future::block_on(conformance::check_async(open))?)
}

#[test]
fn what_left_a_window_is_in_the_file_after_the_process_closed_it() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("episode.db");
    let text = "large \u{1F680} ".repeat(600_000);
    let mut window = Window::<Agent, _>::open(store::open(&path)?, Episode::new("e", "p").budget(10_000_000))?;
    let lanes = window.lanes();
    let id = lanes.schema.push(text.as_str())?;
    let tombstones = lanes.externalize().wait()?.schema.evict(id).wait()?;
    assert_eq!(window.recall(id).wait()?.content().as_text(), Some(text.as_str()));
    drop(window);

    let store = store::open(&path)?;
    assert_eq!(store.get(&tombstones[0].sha256())?, text.as_bytes());
    assert_eq!(store.length(&EpisodeId::new("e"))?, 3, "opened, externalized, evicted");
    let again = Window::<Agent, _>::open(store, Episode::new("e", "p"));
    assert!(matches!(again, Err(OpenError::Exists { records: 3, .. })));
    Ok(())
}

/// Another process holds the file: this test, run again with the path in its environment.
#[test]
fn a_second_process_is_told_which_file_is_in_use() -> Outcome {
    if let Some(path) = std::env::var_os("KEEPSPAN_TEST_HELD") {
        let refused = store::open(&path);
        assert!(matches!(refused, Err(StoreError::InUse { path: named }) if named.as_os_str() == path));
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("held.db");
    let _held = store::open(&path)?;
    let other = Command::new(std::env::current_exe()?)
        .args(["--exact", "a_second_process_is_told_which_file_is_in_use"])
        .env("KEEPSPAN_TEST_HELD", &path)
        .output()?;
    assert!(other.status.success(), "{}", String::from_utf8_lossy(&other.stdout));
    Ok(())
}

#[test]
fn a_million_spans_are_pushed_externalized_and_evicted() -> Outcome {
    let mut window = Window::<Agent, _>::open(MemoryStore::new(), Episode::new("e", "p").budget(u64::MAX))?;
    let lanes = window.lanes();
    let ids = (0..1_000_000).map(|n: u32| lanes.work.push(n.to_string())).collect::<Result<Vec<_>, _>>()?;
    let lanes = lanes.externalize().wait()?;
    lanes.work.evict(ids[500_000]).wait()?;
    lanes.work.evict(ids).wait().expect_err("one of them is evicted already");
    let rest = lanes.work.resident();
    assert_eq!(rest.len(), 999_999);
    lanes.work.evict(rest).wait()?;
    drop(lanes);
    assert_eq!(window.render().len(), 1, "one pointer for all");
    assert_eq!(
        window.recall(keepspan::SpanId::parse("s777777").ok_or("id")?).wait()?.content().as_text(),
        Some("777776")
    );
    Ok(())
}
