//! Resume (rule R26): the same window again, each record checked against those before it, and other lanes only as somebody
//! says.

use std::{collections::BTreeMap, future::IntoFuture as _, sync::Arc};

use keepspan::{
    CommitError, Episode, EpisodeId, Escalation, Finish, JournalError, Limits, ModelAnswer, Mutation, NewSpan,
    OneByteAToken, Outcome, Recovered, ResumeError, SelectionError, SpanId, SummarizeError, SummaryText, Window,
    audit::{self, History},
    store::{Batch, Blob, MemoryStore, Store, StoreError},
    tool::Answer,
};
use keepspan_tests::{Agent, Delay, Fault, Faulty, Seen, memory, now, unsaved};

type Checked<T = ()> = Result<T, Box<dyn std::error::Error>>;
type Windowed = Window<Agent, Arc<MemoryStore>>;

fn id() -> EpisodeId {
    EpisodeId::new("e")
}

fn episode(policy: &str) -> Episode {
    let limits = Limits::of(6_000).fixed(100).trigger(4_500).index(800).rationale(60).margin(100);
    Episode::new("e", policy).budget(limits)
}

fn opened(store: &Arc<MemoryStore>) -> Result<Windowed, keepspan::OpenError> {
    Window::open_with(store.clone(), episode("p"), OneByteAToken)
}

fn resumed(store: &Arc<MemoryStore>) -> Result<Windowed, ResumeError> {
    Window::resume_with(store.clone(), episode("p"), OneByteAToken)
}

fn summary(text: &str) -> Result<SummaryText, keepspan::SummaryTextError> {
    ModelAnswer::new(Finish::Stop, text).try_into()
}

/// What [`episode_of_everything`] redacts in the end.
const SECRET: &str = "sk-live-0123456789";

fn work(window: &mut Windowed, spans: usize) -> Checked<Vec<SpanId>> {
    let first = window.uncommitted().spans;
    (first..first + spans).map(|n| Ok(window.lanes().work.push(format!("{n} {}", "t".repeat(1_200)))?)).collect()
}

/// Evicts the first that is offered, with a rationale that no commit has yet.
fn passed(window: &mut Windowed) -> Checked {
    let lanes = window.lanes().externalize().wait()?;
    let pass = lanes.admit().map_err(|refusal| refusal.reason().to_string())?;
    let first = pass.index().offers().first().map(|offer| offer.span().to_string());
    let proposal = pass.parse(&Answer::prune(first).with_rationale("not needed"))?;
    match pass.apply(proposal).wait()? {
        Outcome::Pruned(report) => assert!(report.rationale().is_some()),
        Outcome::Unchanged => return Err("nothing left".into()),
    }
    Ok(())
}

#[test]
fn a_number_that_a_stop_took_along_is_not_used_again() -> Checked {
    let store = memory();
    let mut window = opened(&store)?;
    let spans = work(&mut window, 4)?;
    passed(&mut window)?;
    let rationale = unsaved(&window).pop().ok_or("no rationale")?;
    let mut window = resumed(&store)?;
    assert_eq!(window.missing(), [rationale.span]);
    let lanes = window.lanes().externalize().wait()?;
    let short = lanes.work.summarize(spans[2], summary("short")?, &lanes.recap).wait()?;
    assert!(short > rationale.span);
    drop(lanes);
    let before = Seen::of(&mut window);
    assert_eq!(before.difference(&Seen::of(&mut resumed(&store)?)), None);
    Ok(())
}

#[test]
fn what_a_stop_would_lose_is_said_before_it_and_after_it() -> Checked {
    let store = memory();
    let mut window = opened(&store)?;
    window.lanes().schema.push("users.id BIGINT")?;
    drop(window.lanes().externalize().wait()?);
    let (lost, key) = (window.lanes().work.push("four")?, window.lanes().work.push("a key")?);
    window.lanes().work.discard(key, Mutation::new("a key", "ask")?).wait()?;
    let uncommitted = window.uncommitted();
    assert_eq!((uncommitted.spans, uncommitted.tokens, uncommitted.bytes), (1, 4, 4));
    assert_eq!(unsaved(&window).first().map(|unsaved| (unsaved.span, unsaved.lane)), Some((lost, "work")));
    let window = resumed(&store)?;
    assert_eq!((window.missing(), window.uncommitted().spans), (vec![lost], 0));
    let refused = window.recall(lost).wait().map(|_| ()).map_err(|error| error.to_string());
    let said = "s2 entered and was never committed, so its text is gone with the process that held it: only its number is known";
    assert_eq!(refused, Err(said.to_owned()));
    Ok(())
}

#[test]
fn the_last_owner_writes_and_the_one_before_keeps_its_text() -> Checked {
    let store = memory();
    let mut first = opened(&store)?;
    let durable = first.lanes().work.push("durable")?;
    drop(first.lanes().externalize().wait()?);
    let mut second = resumed(&store)?;
    let late = first.lanes().work.push("late")?;
    for _ in 0..2 {
        let refused = first.lanes().externalize().wait().map(drop);
        assert!(matches!(refused, Err(CommitError::Superseded { expected: 2, found: 2, .. })), "{refused:?}");
        let refused = first.recover().map(drop);
        assert!(
            matches!(refused, Err(ResumeError::Commit(CommitError::Superseded { expected: 2, found: 2, .. }))),
            "{refused:?}"
        );
    }
    assert_eq!(unsaved(&first).iter().map(|unsaved| unsaved.span).collect::<Vec<_>>(), [late]);
    for unsaved in unsaved(&first) {
        assert_eq!(second.lanes().work.push(unsaved.content.as_text().ok_or("no text")?)?, late);
    }
    second.lanes().externalize().wait()?.work.evict([durable, late]).wait()?;
    assert_eq!(second.recall(late).wait()?.content().as_text(), Some("late"));
    Ok(())
}

#[test]
fn a_commit_cancelled_on_either_side_is_asked_for() -> Checked {
    for (before, after) in [(1, 0), (0, 1)] {
        let memory = memory();
        let store = Delay { inner: memory.clone(), before: 0, after: 0 };
        let window = now(Window::<Agent, _>::open_async(store, episode("p"), OneByteAToken)).ok_or("it waits")??;
        let store = Delay { before, after, ..window.into_store() };
        let cancelled = now(Window::<Agent, _>::resume_async(store, episode("p"), OneByteAToken));
        assert!(cancelled.is_none(), "a resumption is a commit too");
        let records = Store::length(&memory, &id())?;
        assert_eq!(records, if after == 1 { 2 } else { 1 });
        let store = Delay { inner: memory.clone(), before, after };
        let mut window =
            futures_lite::future::block_on(Window::<Agent, _>::resume_async(store, episode("p"), OneByteAToken))?;
        let span = window.lanes().schema.push("users.id BIGINT")?;
        assert!(now(window.lanes().externalize()).is_none());
        let recovered = now(window.recover_async()).ok_or("it waits")??;
        let written = recovered == Recovered::Written { moved: Vec::new() };
        assert_eq!((written, window.uncommitted().spans), (after == 1, before as usize));
        assert_eq!(Store::length(&memory, &id())?, records + 1 + u64::from(after));
        drop(futures_lite::future::block_on(window.lanes().externalize().into_future())?);
        assert_eq!(now(window.recall(span)).ok_or("it waits")??.content().as_text(), Some("users.id BIGINT"));
        assert_eq!(Seen::of(&mut window).difference(&Seen::of(&mut resumed(&memory)?)), None);
    }
    Ok(())
}

#[test]
fn what_a_lost_commit_brought_is_read_back() -> Checked {
    let store = Arc::new(Faulty::default());
    let mut window = Window::<Agent, _>::open(store.clone(), Episode::new("e", "p"))?;
    let span = window.lanes().schema.push("users.id BIGINT")?;
    store.arm(1, Fault::Unacknowledged);
    assert!(window.lanes().externalize().wait().is_err());
    // The end of the log, the log in two reads, then the text.
    store.arm(4, Fault::BitFlip);
    let refused = window.recover();
    let named =
        matches!(&refused, Err(ResumeError::Text { span: of, source: StoreError::Corrupt { .. } }) if *of == span);
    assert!(named, "{refused:?}");
    assert_eq!(window.uncommitted().spans, 1);
    assert_eq!(window.recover()?, Recovered::Written { moved: Vec::new() });
    assert_eq!(window.uncommitted().spans, 0);
    window.lanes().externalize().wait()?.schema.evict(span).wait()?;
    Ok(())
}

#[test]
fn a_pass_whose_answer_was_lost_is_in_the_window_after_all() -> Checked {
    let store = Arc::new(Faulty::default());
    let mut window = Window::<Agent, _>::open_with(store.clone(), episode("p"), OneByteAToken)?;
    let spans: Vec<_> =
        (0..4).map(|n| window.lanes().work.push(format!("{n} {}", "t".repeat(1_200)))).collect::<Result<_, _>>()?;
    let lanes = window.lanes().externalize().wait()?;
    let pass = lanes.admit().map_err(|refusal| refusal.reason().to_string())?;
    let answer = Answer::prune([spans[0].to_string()]).with_rationale("not needed");
    let answer = answer.summarize([spans[1].to_string(), spans[2].to_string()], "two and three");
    let proposal = pass.parse(&answer)?;
    // The summary's bytes, their read-back, then the record.
    store.arm(3, Fault::Unacknowledged);
    assert!(pass.apply(proposal).wait().is_err());
    // The summary would be s5 and the rationale s6.
    let lanes = window.lanes();
    let turn = lanes.work.push(NewSpan::model("I run it.").calls(["call_1"]))?;
    let result = lanes.work.push(NewSpan::tool("run", "done").answers("call_1"))?;
    let last = lanes.work.push("and on")?;
    assert_eq!([turn, result, last].map(SpanId::number), [5, 6, 7]);
    drop(lanes);
    let Recovered::Written { moved } = window.recover()? else { return Err("it was written".into()) };
    let numbers: Vec<_> = moved.iter().map(|(old, new)| (old.number(), new.number())).collect();
    assert_eq!(numbers, [(5, 7), (6, 8), (7, 9)]);
    assert_eq!(window.missing().iter().map(|span| span.number()).collect::<Vec<_>>(), [6]);
    let moved = |span| moved.iter().find(|(old, _)| *old == span).map(|(_, new)| *new).ok_or("not moved");
    for (span, text) in [(turn, "I run it."), (result, "done"), (last, "and on")] {
        assert_eq!(window.recall(moved(span)?).wait()?.content().as_text(), Some(text));
    }
    // Its exchange is still one.
    let lanes = window.lanes().externalize().wait()?;
    let half = lanes.work.summarize(moved(turn)?, summary("x")?, &lanes.recap).wait();
    let half = matches!(half, Err(SummarizeError::Selection(SelectionError::HalfAnExchange { left, .. })) if left == moved(result)?);
    assert!(half);
    drop(lanes);
    let before = Seen::of(&mut window);
    let mut resumed = Window::<Agent, _>::resume_with(store, episode("p"), OneByteAToken)?;
    assert_eq!(before.difference(&Seen::of(&mut resumed)), None);
    Ok(())
}

/// One of everything, with what the window shows after each commit that leaves nothing uncommitted.
fn episode_of_everything(store: &Arc<MemoryStore>) -> Checked<(Windowed, BTreeMap<u64, Seen>)> {
    let (mut window, mut seen) = (opened(store)?, BTreeMap::new());
    let mut look = |window: &mut Windowed| {
        if unsaved(window).is_empty() {
            seen.insert(window.records(), Seen::of(window));
        }
    };
    look(&mut window);
    let spans = work(&mut window, 4)?;
    let secret = window.lanes().work.push(SECRET)?;
    let schema = window.lanes().schema.push(NewSpan::tool("describe_table", "users.id BIGINT").reads("users"))?;
    drop(window.lanes().externalize().wait()?);
    look(&mut window);
    passed(&mut window)?;
    let lanes = window.lanes();
    lanes.work.push(NewSpan::model("I run it.").calls(["call_1"]))?;
    lanes.work.push(NewSpan::tool("run", "done").answers("call_1"))?;
    window.lanes().externalize().wait()?.schema.evict(schema).wait()?;
    look(&mut window);
    window.lanes().schema.restore(schema).wait()?;
    look(&mut window);
    let lanes = window.lanes().externalize().wait()?;
    let one = lanes.work.summarize([spans[1], spans[2]], summary("one and two")?, &lanes.recap).wait()?;
    drop(lanes);
    look(&mut window);
    window.lanes().recap.reground(one).wait()?;
    look(&mut window);
    let lanes = window.lanes().externalize().wait()?;
    let two = lanes.work.summarize([spans[1], spans[2]], summary("one and two again")?, &lanes.recap).wait()?;
    lanes.recap.escalate(two, summary("all")?, Escalation::because("no room")?).wait()?;
    drop(lanes);
    look(&mut window);
    window.change_policy("p2").wait()?;
    window.change_policy("p").wait()?;
    look(&mut window);
    let key = window.lanes().work.push("a key")?;
    window.lanes().work.discard(key, Mutation::new("a key", "ask")?).wait()?;
    window.lanes().work.redact(secret, Mutation::new("a secret", "ask")?).wait()?;
    look(&mut window);
    Ok((window, seen))
}

fn records(store: &MemoryStore) -> Checked<Vec<Vec<u8>>> {
    Ok(Store::read(store, &id(), 0, u64::MAX)?)
}

/// Another store with these records, and with the texts of this one as far as they were not sealed by then.
fn copied(store: &MemoryStore, history: &History, records: Vec<Vec<u8>>) -> Checked<Arc<MemoryStore>> {
    let copy = memory();
    let digests = history.spans().filter_map(|(facts, _)| facts.sha256);
    let (mut blobs, mut seals) = (Vec::new(), Vec::new());
    for digest in digests {
        match store.get(&digest) {
            Ok(bytes) => blobs.push(Blob::new(bytes)),
            Err(StoreError::Sealed { digest }) if records.len() == history.entries().len() => seals.push(digest),
            Err(StoreError::Sealed { .. }) => blobs.push(Blob::new(SECRET)),
            Err(error) => return Err(error.into()),
        }
    }
    Store::commit(&copy, &Batch::new(id(), 0, blobs, records).sealing(seals))?;
    Ok(copy)
}

/// The record that resume, history and verification all say is damaged.
fn damaged(store: &Arc<MemoryStore>) -> Checked<u64> {
    let error = match resumed(store) {
        Err(ResumeError::Journal(error)) => error,
        Err(other) => return Err(other.into()),
        Ok(_) => return Err("it was taken".into()),
    };
    let read = History::read(store, &id()).err().map(|error| error.to_string());
    assert_eq!(read, Some(error.to_string()));
    let faults = audit::verify(store, &id(), |_| {}).faults;
    assert_eq!(faults.first().map(ToString::to_string), Some(error.to_string()), "and what else is wrong after it");
    match error {
        JournalError::Record { record, .. } => Ok(record),
        other => Err(other.into()),
    }
}

#[test]
fn a_log_that_was_cut_off_is_an_older_window() -> Checked {
    let store = memory();
    let (_, seen) = episode_of_everything(&store)?;
    let (history, records) = (History::read(&store, &id())?, records(&store)?);
    assert!(seen.len() > 8, "{}", seen.len());
    for (length, seen) in &seen {
        let older = copied(&store, &history, records.iter().take(usize::try_from(*length)?).cloned().collect())?;
        let read = History::read(&older, &id())?;
        let mut window = resumed(&older)?;
        assert_eq!((read.utilization(), read.accounting()), (window.utilization(), &window.accounting()));
        assert_eq!(Seen::of(&mut window).difference(seen), None, "{length} records");
    }
    let none = copied(&store, &history, Vec::new())?;
    assert!(matches!(resumed(&none), Err(ResumeError::Journal(JournalError::NoEpisode { .. }))));
    Ok(())
}

#[test]
fn a_record_that_was_changed_moved_or_removed_is_named() -> Checked {
    let store = memory();
    episode_of_everything(&store)?;
    let (history, records) = (History::read(&store, &id())?, records(&store)?);
    let damaged = |records: Vec<Vec<u8>>| damaged(&copied(&store, &history, records)?);
    let other = memory();
    let mut window = Window::<Agent, _>::open_with(other.clone(), Episode::new("f", "p"), OneByteAToken)?;
    for _ in 0..records.len() {
        window.lanes().work.push("elsewhere")?;
        drop(window.lanes().externalize().wait()?);
    }
    let foreign = Store::read(&other, &EpisodeId::new("f"), 0, u64::MAX)?;
    for at in 0..records.len() {
        let (record, number) = (&records[at], u64::try_from(at)?);
        for byte in [0, 1, record.len() / 2, record.len() - 33, record.len() - 32, record.len() - 1] {
            for bit in [1, 0x80] {
                let mut flipped = records.clone();
                flipped[at][byte] ^= bit;
                assert_eq!(damaged(flipped)?, number, "byte {byte}");
            }
        }
        for length in [0, 1, 31, 32, record.len() - 1] {
            let mut short = records.clone();
            short[at].truncate(length);
            assert_eq!(damaged(short)?, number, "{length} bytes");
        }
        let mut long = records.clone();
        long[at].push(0);
        assert_eq!(damaged(long)?, number);
        let mut twice = records.clone();
        twice.insert(at, record.clone());
        assert_eq!(damaged(twice)?, number + 1);
        let mut spliced = records.clone();
        spliced[at].clone_from(&foreign[at]);
        assert_eq!(damaged(spliced)?, number);
        if at + 1 < records.len() {
            let mut removed = records.clone();
            removed.remove(at);
            assert_eq!(damaged(removed)?, number);
            let mut swapped = records.clone();
            swapped.swap(at, at + 1);
            assert_eq!(damaged(swapped)?, number);
        }
    }
    for garbage in [Vec::new(), vec![2], vec![7; 32], vec![2; 500]] {
        let mut more = records.clone();
        more.push(garbage);
        assert_eq!(damaged(more)?, u64::try_from(records.len())?);
    }
    Ok(())
}

#[test]
fn a_text_that_is_not_what_it_was_is_named() -> Checked {
    let store = Arc::new(Faulty::default());
    let mut window = Window::<Agent, _>::open(store.clone(), Episode::new("e", "p"))?;
    let one = window.lanes().schema.push("users.id BIGINT")?;
    drop(window.lanes().externalize().wait()?);
    for fault in [Fault::BitFlip, Fault::ShortRead] {
        // The log in two reads, then the text.
        store.arm(3, fault);
        let refused = Window::<Agent, _>::resume(store.clone(), Episode::new("e", "p")).map(drop);
        let named =
            matches!(&refused, Err(ResumeError::Text { span, source: StoreError::Corrupt { .. } }) if *span == one);
        assert!(named, "{refused:?}");
    }
    for nth in 1..5 {
        let before = store.length(&id())?;
        store.arm(nth, Fault::Fails);
        let refused = Window::<Agent, _>::resume(store.clone(), Episode::new("e", "p")).map(drop);
        assert!(refused.is_err(), "{nth}");
        assert_eq!(store.length(&id())?, before);
    }
    assert!(Window::<Agent, _>::resume(store, Episode::new("e", "p")).is_ok());
    Ok(())
}

/// What was not saved can be pushed again as it was: who said it, as which part of an exchange.
#[test]
fn what_was_not_saved_is_pushed_again_as_it_was() -> Checked {
    let store = memory();
    let mut window = opened(&store)?;
    let lanes = window.lanes();
    lanes.work.push(NewSpan::model("look").calls(["a"]))?;
    lanes.work.push(NewSpan::tool("read", "8080").answers("a").reads("app.conf"))?;
    let shown = |window: &Windowed| -> Vec<_> {
        let all = window.render();
        all.iter().map(|m| (m.role(), m.origin(), m.lane(), m.name().map(str::to_owned), m.content().clone())).collect()
    };
    let (before, unsaved) = (shown(&window), window.unsaved());
    let mut next = resumed(&store)?;
    for span in unsaved {
        assert_eq!(span.lane, "work");
        next.lanes().work.push(span)?;
    }
    assert_eq!((shown(&next), next.open_calls().len()), (before, 0));
    Ok(())
}

/// A store whose next commit is under way for as long as it likes, while nobody waits for it any more.
#[derive(Default)]
struct Late {
    inner: MemoryStore,
    delays: std::sync::atomic::AtomicBool,
    under_way: std::sync::Mutex<Option<Batch>>,
}

impl Late {
    fn lands(&self) -> Checked {
        let batch = self.under_way.lock().map_err(|_| "poisoned")?.take().ok_or("nothing is under way")?;
        Ok(Store::commit(&self.inner, &batch)?)
    }
}

impl Store for Late {
    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        if !self.delays.swap(false, std::sync::atomic::Ordering::SeqCst) {
            return Store::commit(&self.inner, batch);
        }
        let (blobs, records) = (batch.blobs().to_vec(), batch.records().to_vec());
        let batch = Batch::new(batch.episode().clone(), batch.expected(), blobs, records);
        *self.under_way.lock().map_err(|_| StoreError::Unacknowledged)? = Some(batch);
        Err(StoreError::Unacknowledged)
    }

    fn get(&self, digest: &keepspan::Digest) -> Result<Vec<u8>, StoreError> {
        Store::get(&self.inner, digest)
    }

    fn read(&self, episode: &EpisodeId, from: u64, most: u64) -> Result<Vec<Vec<u8>>, StoreError> {
        Store::read(&self.inner, episode, from, most)
    }

    fn length(&self, episode: &EpisodeId) -> Result<u64, StoreError> {
        Store::length(&self.inner, episode)
    }

    fn holders(&self, signatures: &[keepspan::Digest]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        Store::holders(&self.inner, signatures)
    }
}

/// A commit that lands after the store said that it has none supersedes its own window, which takes it for what it is.
#[test]
fn a_commit_that_lands_late_is_the_windows_own() -> Checked {
    let store = Arc::new(Late::default());
    let mut window = Window::<Agent, _>::open_with(store.clone(), episode("p"), OneByteAToken)?;
    let first = window.lanes().work.push("first")?;
    store.delays.store(true, std::sync::atomic::Ordering::SeqCst);
    assert!(window.lanes().externalize().wait().is_err());
    assert_eq!(window.recover()?, Recovered::NotWritten);
    let second = window.lanes().work.push("second")?;
    store.lands()?;
    assert!(matches!(window.lanes().externalize().wait(), Err(CommitError::Superseded { .. })));
    assert_eq!(window.recover()?, Recovered::Written { moved: vec![] });
    assert_eq!(window.unsaved().iter().map(|span| span.span).collect::<Vec<_>>(), [second]);
    window.lanes().externalize().wait()?.work.evict([first, second]).wait()?;
    for (span, text) in [(first, "first"), (second, "second")] {
        assert_eq!(window.recall(span).wait()?.content().as_text(), Some(text));
    }
    Ok(())
}
