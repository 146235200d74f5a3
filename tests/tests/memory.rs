//! "Did I see this?" has three answers, and "no" is one only when the record is complete (R21).

use std::sync::Arc;

use keepspan::{
    Digest, Doubt, Episode, EpisodeId, Escalation, Finish, Memory, ModelAnswer, Mutation, NewSpan, Question, SpanId,
    SummaryText, Whereabouts, Window,
    store::{Batch, MemoryStore, Store, StoreError},
};
use keepspan_tests::{Agent, Fault, Faulty, memory};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn window() -> Result<Window<Agent, Arc<MemoryStore>>, keepspan::OpenError> {
    Window::open(memory(), Episode::new("e", "p"))
}

fn summary(text: &str) -> Result<SummaryText, keepspan::SummaryTextError> {
    ModelAnswer::new(Finish::Stop, text).try_into()
}

fn ids(spans: &[Whereabouts]) -> Vec<SpanId> {
    spans.iter().map(Whereabouts::span).collect()
}

/// The spans that match, where there are no others.
fn all(memory: Memory) -> Result<Vec<Whereabouts>, String> {
    match memory {
        Memory::Recorded { spans, more: None } => Ok(spans),
        other => Err(format!("{other:?}")),
    }
}

#[test]
fn a_span_is_resident_evicted_summarized_or_was_never_there() -> Outcome {
    let mut window = window()?;
    let lanes = window.lanes();
    let (here, gone) = (lanes.schema.push("users.id BIGINT")?, lanes.schema.push("users.name TEXT")?);
    let (first, second) = (lanes.work.push("a".repeat(400))?, lanes.work.push("b".repeat(400))?);
    let lanes = lanes.externalize().wait()?;
    let tombstone = lanes.schema.evict(gone).wait()?.remove(0);
    let by = lanes.work.summarize([first, second], summary("letters")?, &lanes.recap).wait()?;
    drop(lanes);

    let asked = |window: &Window<Agent, _>, span| all(window.ask(&Question::span(span)));
    assert_eq!(asked(&window, here)?, [Whereabouts::Resident { span: here }]);
    assert_eq!(asked(&window, gone)?, [Whereabouts::Evicted { span: gone, pointer: tombstone.pointer() }]);
    let [Whereabouts::Summarized { span, by: stands, pointer }] = &asked(&window, first)?[..] else {
        return Err("summarized".into());
    };
    assert_eq!((*span, *stands, pointer.span()), (first, by, first));
    assert!(pointer.as_str().ends_with("recall s3]"), "{pointer}");
    assert_eq!(asked(&window, by)?, [Whereabouts::Resident { span: by }]);
    let unborn = SpanId::parse("s99").ok_or("an id")?;
    assert!(matches!(window.ask(&Question::span(unborn)), Memory::NotRecorded));

    window.lanes().recap.reground(by).wait()?;
    assert_eq!(asked(&window, first)?, [Whereabouts::Resident { span: first }]);
    assert!(matches!(&asked(&window, by)?[..], [Whereabouts::Evicted { span, .. }] if *span == by), "re-grounded");
    let lanes = window.lanes().externalize().wait()?;
    let again = lanes.work.summarize(first, summary("the letter a")?, &lanes.recap).wait()?;
    drop(lanes);
    assert!(matches!(&asked(&window, first)?[..], [Whereabouts::Summarized { by, .. }] if *by == again), "the newest");
    Ok(())
}

#[test]
fn a_source_is_found_under_the_summary_that_stands_for_it_now() -> Outcome {
    let mut window = window()?;
    let source = window.lanes().work.push("exit code 137 ".repeat(60))?;
    let lanes = window.lanes().externalize().wait()?;
    let first = lanes.work.summarize(source, summary("it was killed, out of memory")?, &lanes.recap).wait()?;
    let second = lanes.recap.escalate(first, summary("killed")?, Escalation::because("no room")?).wait()?;
    drop(lanes);
    for span in [source, first] {
        let found = all(window.ask(&Question::span(span)))?;
        assert!(matches!(&found[..], [Whereabouts::Summarized { by, .. }] if *by == second), "{found:?}");
    }
    assert!(window.recall(source).wait()?.content().as_text().is_some_and(|text| text.contains("137")));
    Ok(())
}

#[test]
fn exact_content_is_found_wherever_it_is_and_however_often_it_came() -> Outcome {
    let mut window = window()?;
    let text = "retry-after: 30";
    let lanes = window.lanes();
    let (evicted, _other) = (lanes.work.push(text)?, lanes.work.push("retry-after: 31")?);
    lanes.externalize().wait()?.work.evict(evicted).wait()?;
    let fresh = window.lanes().work.push(text)?;
    assert_eq!(ids(&all(window.ask(&Question::exact(text)))?), [evicted, fresh]);
    assert_eq!(ids(&all(window.ask(&Question::digest(Digest::of(text.as_bytes()))))?), [evicted, fresh]);
    assert!(matches!(window.ask(&Question::exact("retry-after")), Memory::NotRecorded));
    Ok(())
}

#[test]
fn text_is_found_in_the_window_in_the_store_and_under_a_summary() -> Outcome {
    let mut window = window()?;
    let lanes = window.lanes();
    let spans = (0..150).map(|n| lanes.work.push(format!("request req-{n:03} took {n} ms, padded so as to be longer")));
    let spans = spans.collect::<Result<Vec<_>, _>>()?;
    let lanes = lanes.externalize().wait()?;
    lanes.work.evict(&spans[..100]).wait()?;
    lanes.work.summarize(&spans[100..120], summary("requests went fine")?, &lanes.recap).wait()?;
    drop(lanes);
    for (n, span) in spans.iter().enumerate() {
        assert_eq!(ids(&all(window.ask(&Question::text(format!("req-{n:03}"))))?), [*span]);
    }
    assert_eq!(ids(&all(window.ask(&Question::text(" took ")))?), spans, "all matches, oldest first");
    assert!(matches!(window.ask(&Question::text("REQ-001")), Memory::NotRecorded), "case as it is");
    Ok(())
}

/// What was removed, or may have been: never "no".
#[test]
fn a_lossy_window_says_no_to_nothing() -> Outcome {
    let mut window = window()?;
    let lanes = window.lanes();
    let (kept, key) = (lanes.work.push("users.id BIGINT")?, lanes.work.push("API_KEY=hunter2")?);
    assert!(matches!(window.ask(&Question::text("hunter3")), Memory::NotRecorded));
    window.lanes().work.discard(key, Mutation::new("leaked key", "ask the operator")?).wait()?;

    for question in [Question::text("hunter3"), Question::exact("x"), Question::tool("read")] {
        let Memory::Unknown { why: why @ Doubt::Lossy { .. } } = window.ask(&question) else {
            return Err("unknown".into());
        };
        assert!(why.to_string().contains("leaked key"), "{why}");
    }
    match window.ask(&Question::text("BIGINT")) {
        Memory::Recorded { spans, more: Some(Doubt::Lossy { .. }) } => assert_eq!(ids(&spans), [kept]),
        other => return Err(format!("{other:?}").into()),
    }
    let found = all(window.ask(&Question::span(key)))?;
    let (reason, recovery) = ("leaked key".to_owned(), "ask the operator".to_owned());
    assert_eq!(found, [Whereabouts::Discarded { span: key, reason, recovery }], "the id is the only one there is");
    assert!(matches!(window.ask(&Question::span(SpanId::parse("s9").ok_or("an id")?)), Memory::Unknown { .. }));

    let page = window.lanes().work.push(NewSpan::tool("fetch", "API_KEY=hunter2"))?;
    window.lanes().work.discard(page, Mutation::new("leaked key", "ask the operator")?).wait()?;
    match window.ask(&Question::tool("fetch")) {
        Memory::Recorded { spans, more: Some(Doubt::Lossy { .. }) } => {
            assert!(matches!(&spans[..], [Whereabouts::Discarded { span, .. }] if *span == page), "{spans:?}");
        }
        other => return Err(format!("{other:?}").into()),
    }
    Ok(())
}

#[test]
fn a_text_that_cannot_be_read_may_be_it() -> Outcome {
    let store = Arc::new(Faulty::default());
    let mut window = Window::<Agent, _>::open(store.clone(), Episode::new("e", "p"))?;
    let lanes = window.lanes();
    let spans = ["one req-1", "two req-2", "three req-3"].map(|text| lanes.work.push(text));
    let spans = spans.into_iter().collect::<Result<Vec<_>, _>>()?;
    lanes.externalize().wait()?.work.evict(&spans[..]).wait()?;
    for fault in [Fault::BitFlip, Fault::ShortRead] {
        store.arm(1, fault);
        let answer = window.ask(&Question::text("req-1"));
        assert!(matches!(&answer, Memory::Unknown { why: Doubt::Unreadable { span, .. } } if *span == spans[0]));
        store.arm(2, fault);
        match window.ask(&Question::text("req-")) {
            Memory::Recorded { spans: found, more: Some(Doubt::Unreadable { span, .. }) } => {
                assert_eq!((ids(&found), span), (vec![spans[0], spans[2]], spans[1]), "the others are found");
            }
            other => return Err(format!("{other:?}").into()),
        }
    }
    let lanes = window.lanes();
    let many = (0..100).map(|n| lanes.work.push(format!("filler {n}"))).collect::<Result<Vec<_>, _>>()?;
    lanes.externalize().wait()?.work.evict(many).wait()?;
    store.arm(1, Fault::Fails);
    let answer = window.ask(&Question::text("filler 99"));
    assert!(matches!(answer, Memory::Unknown { why: Doubt::Unreadable { .. } }), "a store that fails is not asked on");
    assert_eq!(ids(&all(window.ask(&Question::text("req-1")))?), spans[..1], "mended");
    assert_eq!(ids(&all(window.ask(&Question::exact("one req-1")))?), spans[..1]);
    Ok(())
}

#[test]
fn a_sealed_text_may_be_it() -> Outcome {
    let store = memory();
    let mut window = Window::<Agent, _>::open(store.clone(), Episode::new("e", "p"))?;
    let lanes = window.lanes();
    let (key, other) = (lanes.work.push("API_KEY=hunter2")?, lanes.work.push("users.id BIGINT")?);
    lanes.externalize().wait()?.work.evict([key, other]).wait()?;
    let another = EpisodeId::new("operator");
    let seal = Batch::new(another, 0, Vec::new(), vec![b"{}".to_vec()]).sealing(vec![Digest::of(b"API_KEY=hunter2")]);
    store.commit(&seal)?;
    let sealed =
        |doubt: &Doubt| matches!(doubt, Doubt::Unreadable { span, source: StoreError::Sealed { .. } } if *span == key);
    assert!(matches!(window.ask(&Question::text("hunter2")), Memory::Unknown { why } if sealed(&why)));
    match window.ask(&Question::text("BIGINT")) {
        Memory::Recorded { spans, more: Some(why) } => assert_eq!((ids(&spans), sealed(&why)), (vec![other], true)),
        other => return Err(format!("{other:?}").into()),
    }
    Ok(())
}

#[test]
fn what_was_redacted_was_here_and_says_why_it_is_gone() -> Outcome {
    let mut window = window()?;
    let lanes = window.lanes();
    let (key, copy) = (lanes.work.push("API_KEY=hunter2")?, lanes.work.push("API_KEY=hunter2")?);
    let filler = lanes.work.push("filler ".repeat(20))?;
    let lanes = lanes.externalize().wait()?;
    lanes.work.summarize([copy, filler], summary("a key was set")?, &lanes.recap).wait()?;
    lanes.work.redact(key, Mutation::new("leaked key", "ask the operator")?).wait()?;
    drop(lanes);
    let Memory::Recorded { spans, more: Some(Doubt::Lossy { .. }) } = window.ask(&Question::exact("API_KEY=hunter2"))
    else {
        return Err("it was here".into());
    };
    assert_eq!(ids(&spans), [key, copy]);
    assert!(spans.iter().all(|found| matches!(found, Whereabouts::Discarded { .. })), "{spans:?}");
    assert!(matches!(window.ask(&Question::text("hunter2")), Memory::Unknown { why: Doubt::Lossy { .. } }));
    Ok(())
}

#[test]
fn after_a_commit_without_an_answer_nothing_is_never() -> Outcome {
    let store = Arc::new(Faulty::default());
    let mut window = Window::<Agent, _>::open(store.clone(), Episode::new("e", "p"))?;
    window.lanes().work.push("a fact")?;
    store.arm(1, Fault::Unacknowledged);
    assert!(window.lanes().externalize().wait().is_err());
    assert!(matches!(window.ask(&Question::text("another")), Memory::Unknown { why: Doubt::Interrupted }));
    let answer = window.ask(&Question::text("a fact"));
    assert!(matches!(answer, Memory::Recorded { more: Some(Doubt::Interrupted), .. }));
    Ok(())
}

#[test]
fn a_screenshot_may_show_what_was_asked_for() -> Outcome {
    let mut window = window()?;
    let shot = window.lanes().work.push(NewSpan::tool("screenshot", vec![0x89, b'P', b'N', b'G']).sized(8, 8))?;
    for question in [Question::text("error"), Question::result("screenshot", |_| true)] {
        let answer = window.ask(&question);
        assert!(matches!(answer, Memory::Unknown { why: Doubt::NotText { span } } if span == shot));
    }
    assert_eq!(ids(&all(window.ask(&Question::exact(vec![0x89, b'P', b'N', b'G'])))?), [shot]);
    assert!(matches!(window.ask(&Question::result("read", |_| true)), Memory::NotRecorded));
    Ok(())
}

#[test]
fn a_call_is_found_by_tool_by_id_and_by_what_it_returned() -> Outcome {
    let mut window = window()?;
    let lanes = window.lanes();
    let mut results = Vec::new();
    for n in 0..3 {
        let call = format!("c{n}");
        lanes.work.push(NewSpan::model("{}").calls([call.as_str()]))?;
        results.push(lanes.work.push(NewSpan::tool("read", format!("file {n}")).answers(call.as_str()))?);
    }
    lanes.externalize().wait()?.work.evict(results[1]).wait()?;
    assert_eq!(ids(&all(window.ask(&Question::tool("read")))?), results);
    assert_eq!(ids(&all(window.ask(&Question::call("read", "c1")))?), results[1..2]);
    assert_eq!(ids(&all(window.ask(&Question::result("read", |text| text.ends_with(['1', '2']))))?), results[1..]);
    assert!(matches!(window.ask(&Question::call("read", "c9")), Memory::NotRecorded));
    assert!(matches!(window.ask(&Question::tool("write")), Memory::NotRecorded));

    let pending = window.lanes().work.push(NewSpan::model("{}").calls(["c3", "c4"]))?;
    window.lanes().work.push(NewSpan::tool("read", "file 3").answers("c3"))?;
    let unlinked = |memory, of| matches!(memory, Memory::Unknown { why: Doubt::Unlinked { span } } if span == of);
    assert!(unlinked(window.ask(&Question::tool("write")), pending), "the call that has no result may be a write");
    assert!(unlinked(window.ask(&Question::call("write", "c4")), pending));
    assert!(matches!(window.ask(&Question::call("write", "c3")), Memory::NotRecorded), "that one was a read");
    let nameless = window.lanes().work.push(NewSpan::notice("done").answers("c4"))?;
    assert!(unlinked(window.ask(&Question::tool("write")), nameless));
    let alone = window.lanes().work.push(NewSpan::tool("write", "ok"))?;
    assert!(unlinked(window.ask(&Question::call("write", "c8")), alone));
    Ok(())
}

/// A narrated action without its evidence: text says it was done, and the record says whether.
#[test]
fn narration_is_no_evidence_and_evicted_evidence_is_found() -> Outcome {
    let mut window = window()?;
    let lanes = window.lanes();
    lanes.rules.push(NewSpan::model("created the ticket, and sent the mail"))?;
    lanes.work.push(NewSpan::model("{}").calls(["c1"]))?;
    let result = lanes.work.push(NewSpan::tool("create_ticket", "id 7").answers("c1"))?;
    lanes.externalize().wait()?.work.evict(result).wait()?;
    let found = all(window.ask(&Question::tool("create_ticket")))?;
    assert!(matches!(&found[..], [Whereabouts::Evicted { pointer, .. }] if pointer.as_str().contains("create_ticket")));
    assert!(matches!(window.ask(&Question::tool("send_mail")), Memory::NotRecorded), "it was never called");
    Ok(())
}

/// An empty lookup is a fact with a span of its own; a lookup that was never made is another.
#[test]
fn nothing_there_is_a_fact() -> Outcome {
    let mut window = window()?;
    let lanes = window.lanes();
    let empty = lanes.route(NewSpan::tool("lookup", "k1: no entry, store version 4").failed())?;
    lanes.externalize().wait()?.failed.evict(empty).wait()?;
    for turn in 0..40 {
        window.lanes().work.push(format!("turn {turn}"))?;
    }
    let looked_up = |key: &'static str| Question::result("lookup", move |text| text.starts_with(key));
    assert_eq!(ids(&all(window.ask(&looked_up("k1:")))?), [empty], "asked before: recall it, do not ask again");
    assert!(window.recall(empty).wait()?.content().as_text().is_some_and(|text| text.ends_with("version 4")));
    assert!(matches!(window.ask(&looked_up("k2:")), Memory::NotRecorded), "not asked yet");
    Ok(())
}

/// Summaries keep decisions and lose paths, commands and numbers; the record keeps all.
#[test]
fn every_exact_token_is_found_under_its_summary_and_recalled() -> Outcome {
    let mut window = window()?;
    let mut tokens = Vec::new();
    let lanes = window.lanes();
    let mut spans = Vec::new();
    for n in 0..40 {
        let exact = [
            format!("src/mod_{n}/lib.rs"),
            format!("src/mod_{n}/gate.rs"),
            format!("/var/log/agent/{n}.log"),
            format!("cargo test -p unit_{n} -- --nocapture"),
            format!("git rebase --onto v{n}.2"),
            format!("{}.{n:02} ms", n * 37 + 11),
        ];
        let text = format!("We keep the column. {}", exact.join("; "));
        let span = lanes.work.push(text)?;
        spans.push(span);
        tokens.extend(exact.map(|token| (token, span)));
    }
    let lanes = lanes.externalize().wait()?;
    for sources in spans.chunks(10) {
        lanes.work.summarize(sources, summary("the column is kept")?, &lanes.recap).wait()?;
    }
    drop(lanes);
    for (token, span) in &tokens {
        let found = all(window.ask(&Question::text(token.as_str())))?;
        assert!(matches!(&found[..], [Whereabouts::Summarized { span: of, .. }] if of == span), "{token}: {found:?}");
        let recalled = window.recall(*span).wait()?;
        assert!(recalled.content().as_text().is_some_and(|text| text.contains(token.as_str())));
    }
    assert_eq!(tokens.len(), 240);
    Ok(())
}

#[test]
fn the_same_on_an_async_store() -> Outcome {
    fn is_send<T: Send>(value: T) -> T {
        value
    }
    let mut window = window()?;
    let span = window.lanes().work.push("req-7f2")?;
    window.lanes().externalize().wait()?.work.evict(span).wait()?;
    let question = Question::result("shell", |text| text.contains("req"));
    let (text, result) = futures_lite::future::block_on(is_send(async {
        (window.ask_async(&Question::text("req-7f2")).await, window.ask_async(&question).await)
    }));
    assert_eq!(ids(&all(text)?), [span]);
    assert!(matches!(result, Memory::NotRecorded));
    Ok(())
}

/// An owner that another took over from knows a part of the record, before it is told so and after.
#[test]
fn a_superseded_owner_says_no_to_nothing() -> Outcome {
    let store = memory();
    let mut first = Window::<Agent, _>::open(store.clone(), Episode::new("e", "p"))?;
    assert!(matches!(first.ask(&Question::text("8080")), Memory::NotRecorded));
    let mut second = Window::<Agent, _>::resume(store, Episode::new("e", "p"))?;
    second.lanes().work.push("listen = 8080")?;
    drop(second.lanes().externalize().wait()?);
    for _ in 0..2 {
        assert!(matches!(first.ask(&Question::text("8080")), Memory::Unknown { why: Doubt::Superseded }));
        first.lanes().work.push("mine")?;
        assert!(first.lanes().externalize().wait().is_err());
    }
    Ok(())
}

/// What a process saw and did not commit is gone with it, and its log does not know: only a window that was closed lets the
/// next one say that something never was.
#[test]
fn after_a_process_that_did_not_close_its_window_nobody_knows() -> Outcome {
    let (store, question) = (memory(), Question::text("seen and lost"));
    let mut first = Window::<Agent, _>::open(store.clone(), Episode::new("e", "p"))?;
    drop(first.lanes().externalize().wait()?);
    first.lanes().work.push("seen and lost")?;
    drop(first);
    let window = Window::<Agent, _>::resume(store.clone(), Episode::new("e", "p"))?;
    assert!(window.missing().is_empty(), "nothing tells that there was a span");
    assert!(matches!(window.ask(&question), Memory::Unknown { why: Doubt::Stopped { record: 1 } }));

    // Closed or not, what was lost before stays lost, on every later resume.
    window.close()?;
    let window = Window::<Agent, _>::resume(store.clone(), Episode::new("e", "p"))?;
    assert!(matches!(window.ask(&question), Memory::Unknown { why: Doubt::Stopped { record: 1 } }));

    // One that was closed each time is sure; closing externalizes what is left.
    let mut whole = Window::<Agent, _>::open(store.clone(), Episode::new("f", "p"))?;
    let span = whole.lanes().work.push("the last words")?;
    whole.close()?;
    let whole = Window::<Agent, _>::resume(store, Episode::new("f", "p"))?;
    assert!(matches!(whole.ask(&question), Memory::NotRecorded));
    assert_eq!(all(whole.ask(&Question::text("last words")))?, [Whereabouts::Resident { span }]);
    Ok(())
}

#[test]
fn a_window_that_cannot_be_closed_comes_back_whole() -> Outcome {
    let store = Arc::new(Faulty::default());
    let mut window = Window::<Agent, _>::open(store.clone(), Episode::new("e", "p"))?;
    window.lanes().work.push("kept")?;
    store.arm(1, Fault::Fails);
    let Err(refused) = window.close() else { return Err("it was closed".into()) };
    assert!(refused.to_string().starts_with("the window was not closed: "), "{refused}");
    let window = refused.into_window();
    assert_eq!(window.uncommitted().spans, 1);
    window.close()?;
    Ok(())
}
