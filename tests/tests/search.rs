//! Full-text search: whatever left the window is found and recalled, and what was discarded is not (R21, R23).

use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Waker},
};

use keepspan::{
    ByteEstimate, Digest, Episode, EpisodeId, Finish, ModelAnswer, Mutation, NewSpan, Recovered, SpanId, Whereabouts,
    Window,
    search::{Hit, Search, SearchError},
    store::{AsyncStore, Batch, MemoryStore, Store, StoreError},
};
use keepspan_tests::{Agent, Fault, Faulty, memory};

type Outcome = Result<(), Box<dyn std::error::Error>>;
type Memory = Arc<MemoryStore>;

fn window() -> Result<Window<Agent, Memory>, keepspan::OpenError> {
    Window::open(memory(), Episode::new("e", "p").budget(100_000_000))
}

fn spans(hits: &[Hit]) -> Vec<SpanId> {
    hits.iter().map(|hit| hit.span).collect()
}

/// Summaries keep decisions and lose paths, commands and numbers; the index keeps all.
#[test]
fn every_distinctive_token_of_what_was_summarized_is_found_and_recalled() -> Outcome {
    let mut window = window()?;
    let mut tokens = Vec::new();
    let mut sources = Vec::new();
    for n in 0..40_u64 {
        let exact = [
            format!("crates/unit_{n}/src/lib.rs:{}", n + 7),
            format!("C:\\Users\\ci\\build-{n}\\out.log"),
            format!("/var/log/agent/{n}.log"),
            format!("cargo test -p unit_{n} -- --nocapture"),
            format!("git rebase --onto v{n}.2 && git push"),
            format!("{}.{n:02}", n * 3_797 + 1_009),
            format!("req_{:064x}", n * 0x9e37_79b9_7f4a),
            format!("{n}-naïve-Café"),
        ];
        let text = format!("Decision: keep the column. {}", exact.join(" | "));
        let span = window.lanes().work.push(text)?;
        sources.push(span);
        tokens.extend(exact.map(|token| (token, span)));
    }
    let lanes = window.lanes().externalize().wait()?;
    for sources in sources.chunks(10) {
        let summary = ModelAnswer::new(Finish::Stop, "the column is kept").try_into()?;
        lanes.work.summarize(sources, summary, &lanes.recap).wait()?;
    }
    drop(lanes);

    let mut search = Search::new(&window)?;
    assert_eq!(search.update(&window)?.added, 44);
    let mut found = 0;
    for (token, span) in &tokens {
        for query in [format!("\"{token}\""), format!("\"{}\"", token.to_uppercase())] {
            assert_eq!(spans(&search.find(&window, &query, 100)?), [*span], "{query}");
        }
        let hits = search.find(&window, token, 100)?;
        assert_eq!(hits.first().map(|hit| hit.span), Some(*span), "{token}: best first");
        assert!(matches!(hits[0].whereabouts, Whereabouts::Summarized { .. }));
        let recalled = window.recall(*span).wait()?;
        found += usize::from(recalled.content().as_text().is_some_and(|text| text.contains(token.as_str())));
    }
    assert_eq!((found, tokens.len()), (320, 320));
    Ok(())
}

#[test]
fn ten_thousand_spans_are_taken_in_once_and_found() -> Outcome {
    let mut window = window()?;
    let mut search = Search::new(&window)?;
    let mut ids = Vec::new();
    for round in 0..4_u64 {
        let lanes = window.lanes();
        for n in round * 2_500..(round + 1) * 2_500 {
            let fill = n.wrapping_mul(0x9e37_79b9) % 100_000;
            let text =
                format!("read {n} of file src/part_{fill}/mod.rs: fn item_{n}(value: u{fill}) -> Result<(), Error>");
            ids.push(lanes.work.push(text)?);
        }
        let lanes = lanes.externalize().wait()?;
        lanes.work.evict(&ids[ids.len() - 2_400..]).wait()?;
        drop(lanes);
        let updated = search.update(&window)?;
        assert_eq!((updated.added, updated.removed, updated.unreadable.len()), (2_500, 0, 0));
    }
    assert_eq!(search.update(&window)?.added, 0, "nothing new");
    for (n, id) in ids.iter().enumerate().step_by(97) {
        assert_eq!(spans(&search.find(&window, &format!("\"item_{n}\""), 2)?), [*id]);
    }
    assert_eq!(search.find(&window, "result error", 7)?.len(), 7, "no more than asked for");
    assert!(search.find(&window, "nowhere", 7)?.is_empty());
    Ok(())
}

#[test]
fn hits_say_where_the_text_is_now() -> Outcome {
    let mut window = window()?;
    let lanes = window.lanes();
    let (old, new) = (lanes.schema.push("users.id BIGINT")?, lanes.work.push("users.id again")?);
    lanes.work.push(NewSpan::image(vec![1, 2, 3], 8, 8))?;
    let mut search = Search::new(&window)?;
    assert_eq!(search.update(&window)?.added, 0, "not in the store yet");
    drop(window.lanes().externalize().wait()?);
    assert_eq!(search.update(&window)?.added, 2);
    assert_eq!(search.skipped(), 1);
    window.lanes().externalize().wait()?.schema.evict(old).wait()?;
    let hits = search.find(&window, "USERS.ID bigint", 9)?;
    assert_eq!(spans(&hits), [old, new]);
    assert!(hits[0].score > hits[1].score && hits[1].score > 0.0);
    assert_eq!((hits[0].lane, hits[1].lane), ("schema", "work"));
    assert!(matches!(&hits[0].whereabouts, Whereabouts::Evicted { pointer, .. } if pointer.span() == old));
    assert_eq!(hits[1].whereabouts, Whereabouts::Resident { span: new });
    assert_eq!(search.update(&window)?.added, 0, "what was in it stays when it leaves");
    assert_eq!(search.find(&window, "again \"users.id\" bigint", 9)?.len(), 2, "words beside a quote rank only");
    let same = window.lanes().work.push("users.id again")?;
    drop(window.lanes().externalize().wait()?);
    search.update(&window)?;
    assert_eq!(spans(&search.find(&window, "again", 9)?), [same, new], "of equals, the newest first");
    Ok(())
}

#[test]
fn what_was_redacted_is_not_found() -> Outcome {
    let mut window = window()?;
    let lanes = window.lanes();
    let (key, copy, rotated) = (
        lanes.work.push("API_KEY=hunter2")?,
        lanes.work.push("API_KEY=hunter2")?,
        lanes.work.push("API_KEY was rotated")?,
    );
    let filler = lanes.work.push("filler ".repeat(20))?;
    let lanes = lanes.externalize().wait()?;
    let summary = ModelAnswer::new(Finish::Stop, "a key was set").try_into()?;
    lanes.work.summarize([copy, filler], summary, &lanes.recap).wait()?;
    drop(lanes);
    let mut search = Search::new(&window)?;
    search.update(&window)?;
    assert_eq!(spans(&search.find(&window, "hunter2", 9)?), [copy, key]);
    let mutation = Mutation::new("leaked key", "ask the operator")?;
    assert_eq!(window.lanes().work.redact(key, mutation.clone()).wait()?.spans(), [key, copy]);
    assert!(search.find(&window, "hunter2", 9)?.is_empty(), "nor before the update");
    let updated = search.update(&window)?;
    assert_eq!((updated.removed, updated.unreadable.len()), (2, 0));
    assert_eq!(spans(&search.find(&window, "hunter2 api_key", 9)?), [rotated]);
    assert_eq!(Search::new(&window)?.update(&window)?.unreadable, [], "an index made later does not look for them");

    let late = window.lanes().work.push("API_KEY=hunter3")?;
    search.update(&window)?;
    window.lanes().work.discard(late, mutation).wait()?;
    assert_eq!(search.update(&window)?, Default::default(), "it never was in it");
    Ok(())
}

/// After a commit without an answer, a span that was not in it may get another number.
#[test]
fn numbers_that_a_recovery_moved_find_their_own_text() -> Outcome {
    let store = Arc::new(Faulty::default());
    let mut window = Window::<Agent, _>::open(store.clone(), Episode::new("e", "p"))?;
    let source = window.lanes().work.push("source ".repeat(60))?;
    let lanes = window.lanes().externalize().wait()?;
    let summary = ModelAnswer::new(Finish::Stop, "short alpha").try_into()?;
    // Its text is written and read back before its record is.
    store.arm(3, Fault::Unacknowledged);
    assert!(lanes.work.summarize(source, summary, &lanes.recap).wait().is_err());
    drop(lanes);
    let before = window.lanes().work.push("beta")?;
    let mut search = Search::new(&window)?;
    search.update(&window)?;
    let recovered = window.recover()?;
    let Recovered::Written { moved } = recovered else { return Err(format!("{recovered:?}").into()) };
    let [(from, after)] = moved[..] else { return Err(format!("{moved:?} {before} {:?}", window.render()).into()) };
    assert_eq!(from, before);
    drop(window.lanes().externalize().wait()?);
    search.update(&window)?;
    assert_eq!(spans(&search.find(&window, "beta", 9)?), [after]);
    assert_eq!(spans(&search.find(&window, "alpha", 9)?), [before], "the summary took that number");
    Ok(())
}

#[test]
fn a_damaged_text_is_named_and_read_again() -> Outcome {
    let store = Arc::new(Faulty::default());
    let mut window = Window::<Agent, _>::open(store.clone(), Episode::new("e", "p"))?;
    let lanes = window.lanes();
    let ids = ["alpha one", "beta two", "gamma three"].map(|text| lanes.work.push(text));
    let ids = ids.into_iter().collect::<Result<Vec<_>, _>>()?;
    lanes.externalize().wait()?.work.evict(&ids[..]).wait()?;
    let mut search = Search::new(&window)?;
    store.arm(2, Fault::BitFlip);
    let updated = search.update(&window)?;
    assert_eq!((updated.added, updated.unreadable), (2, vec![ids[1]]));
    assert_eq!(spans(&search.find(&window, "alpha beta gamma", 9)?).len(), 2);
    store.arm(1, Fault::Fails);
    assert!(matches!(search.update(&window), Err(SearchError::Store { span, .. }) if span == ids[1]));
    assert_eq!(search.update(&window)?.added, 1);
    assert_eq!(spans(&search.find(&window, "beta", 9)?), [ids[1]]);
    Ok(())
}

#[test]
fn no_query_is_syntax_and_bad_ones_are_typed() -> Outcome {
    let mut window = window()?;
    let id = window.lanes().work.push("rm -rf /tmp/x* NEAR(the end) AND text:y ^z {q} 2>&1")?;
    drop(window.lanes().externalize().wait()?);
    let mut search = Search::new(&window)?;
    search.update(&window)?;
    for query in ["rm -rf /tmp/x*", "NEAR(the end)", "AND", "text:y", "^z", "{q}", "2>&1 +", "'the", "end\0"] {
        assert_eq!(spans(&search.find(&window, query, 9)?), [id], "{query}");
    }
    assert_eq!(spans(&search.find(&window, &"word end ".repeat(5_000), 9)?), [id], "as long as it likes");
    assert!(search.find(&window, "rm", 0)?.is_empty());
    assert!(matches!(search.find(&window, "rm \"-rf", 9), Err(SearchError::OpenQuote { at: 3 })));
    assert!(matches!(search.find(&window, "&& ->", 9), Err(SearchError::NoWord { part }) if part == "&& ->"));
    assert!(matches!(search.find(&window, "rm \"\"", 9), Err(SearchError::NoWord { part }) if part.is_empty()));
    Ok(())
}

#[test]
fn an_index_is_of_one_window() -> Outcome {
    let (one, other) = (window()?, window()?);
    let mut search = Search::new(&one)?;
    assert!(matches!(search.update(&other), Err(SearchError::OtherWindow)));
    assert!(matches!(search.find(&other, "x", 1), Err(SearchError::OtherWindow)));
    Ok(())
}

/// A store whose reads answer at the second poll.
struct Slow(MemoryStore);

impl AsyncStore for Slow {
    async fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        Store::commit(&self.0, batch)
    }

    async fn get_many(&self, digests: &[Digest]) -> Result<Vec<Vec<u8>>, StoreError> {
        futures_lite::future::yield_now().await;
        Store::get_many(&self.0, digests)
    }

    async fn read(&self, episode: &EpisodeId, from: u64, most: u64) -> Result<Vec<Vec<u8>>, StoreError> {
        Store::read(&self.0, episode, from, most)
    }

    async fn length(&self, episode: &EpisodeId) -> Result<u64, StoreError> {
        Store::length(&self.0, episode)
    }

    async fn holders(&self, signatures: &[Digest]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        Store::holders(&self.0, signatures)
    }
}

#[test]
fn an_update_that_was_dropped_loses_nothing() -> Outcome {
    futures_lite::future::block_on(async {
        let episode = Episode::new("e", "p");
        let mut window = Window::<Agent, _>::open_async(Slow(MemoryStore::default()), episode, ByteEstimate).await?;
        let lanes = window.lanes();
        let ids = (0..150).map(|n| lanes.work.push(format!("item i{n}"))).collect::<Result<Vec<_>, _>>()?;
        lanes.externalize().await?.work.evict(&ids[..]).await?;
        let mut search = Search::new(&window)?;
        {
            let mut dropped = pin!(search.update_async(&window));
            // Waits in the first group's read, then in the second's.
            for _ in 0..2 {
                assert!(dropped.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            }
        }
        assert_eq!(search.find(&window, "item", 999)?.len(), 64);
        assert_eq!(search.update_async(&window).await?.added, 86);
        assert_eq!(search.find(&window, "item", 999)?.len(), 150);
        Ok(())
    })
}

/// An agent may hold an index across an `.await`, and share it.
#[test]
fn an_index_is_send_and_sync() {
    fn is<T: Send + Sync>() {}
    fn future<T: Send>(_: T) {}
    is::<Search>();
    let _checked = |search: &mut Search, window: &Window<Agent, Memory>| future(search.update_async(window));
}
