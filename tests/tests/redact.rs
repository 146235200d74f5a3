//! What must not be kept leaves the window and the store: whatever it was, wherever it was, however often (rule R23).

use keepspan::{
    Authority, CommitError, DiscardError, Episode, EpisodeId, Escalation, Fidelity, Finish, Loss, Memory, Message,
    ModelAnswer, Mutation, NewSpan, OneByteAToken, OpenError, Question, RecallError, RedactError, Redacted,
    RestoreError, SelectionError, Shown, SpanId, SummaryText, Whereabouts, Window,
    audit::{self, Happening, History, Standing},
    search::Search,
    store::{Blob, MemoryStore, Store, StoreError},
};
use keepspan_tests::{Agent, Fault, Faulty, memory};
use proptest::prelude::*;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;
type Shared = std::sync::Arc<MemoryStore>;
type Windowed<St = Shared> = Window<Agent, St>;

/// Neither a word of the library's own nor part of a digest.
const SECRET: &str = "API_KEY=sk-live-quux";
const WHY: &str = "a key in a tool's output";
const HOW: &str = "ask the operator";

fn episode(name: &str) -> Episode {
    Episode::new(name, "p").budget(1_000_000)
}

fn open<St: Store>(store: St) -> Result<Windowed<St>, OpenError> {
    Window::open_with(store, episode("e"), OneByteAToken)
}

fn why() -> Outcome<Mutation> {
    Ok(Mutation::new(WHY, HOW)?)
}

fn summary(text: &str) -> Outcome<SummaryText> {
    Ok(ModelAnswer::new(Finish::Stop, text).try_into()?)
}

fn secret() -> String {
    format!("env\n{SECRET}\n{}", "x".repeat(300))
}

fn texts(messages: &[Message]) -> Vec<String> {
    messages.iter().map(|message| String::from_utf8_lossy(message.content().as_bytes()).into_owned()).collect()
}

fn shown(messages: &[Message]) -> Vec<String> {
    messages.iter().map(|message| format!("{message:?}")).collect()
}

fn consistent<St>(window: &Windowed<St>) {
    let rendered: u64 = window.render().iter().map(|message| u64::from(message.tokens())).sum();
    assert_eq!(window.utilization(), rendered);
}

/// Everything that the store and the audit can show of the episode.
fn everything(store: &Shared, name: &str) -> Outcome<String> {
    let episode = EpisodeId::new(name);
    let mut all = String::new();
    for record in store.read(&episode, 0, u64::MAX)? {
        all.push_str(&String::from_utf8_lossy(&record));
    }
    let history = History::read(store, &episode)?;
    for (facts, _) in history.spans() {
        let blob = facts.sha256.and_then(|digest| store.get(&digest).ok()).unwrap_or_default();
        all.push_str(&String::from_utf8_lossy(&blob));
        for tombstone in history.tombstones(facts.span) {
            all.push_str(tombstone.pointer().as_str());
        }
    }
    all.push_str(&format!("{history:?}"));
    for turn in 1..=u64::try_from(history.turns().len())? {
        all.push_str(&texts(&history.at_turn(store, turn)?.messages).concat());
    }
    Ok(all)
}

/// Redacts through a handle of `work`.
fn redact<St: Store>(window: &mut Windowed<St>, span: SpanId) -> Result<Redacted, RedactError> {
    let mutation = Mutation::new(WHY, HOW).unwrap_or_else(|_| unreachable!("neither is blank"));
    window.lanes().work.redact(span, mutation).wait()
}

/// All that holds of a text that was redacted, in the window, in the store, in the audit and after a resume.
fn gone(mut window: Windowed, store: &Shared, spans: &[SpanId], sealed: u64) -> Outcome {
    assert!(!texts(&window.render()).concat().contains(SECRET));
    consistent(&window);
    for &span in spans {
        let error = window.recall(span).wait().err().ok_or("it was recalled")?;
        assert_eq!(error.to_string(), format!("{span} was discarded ({WHY}); to recover: {HOW}"));
        let again = window.redact_protected(span, why()?, Authority::of("owner")?).wait().err().ok_or("again")?;
        assert!(matches!(again, RedactError::Selection(SelectionError::Discarded { .. })), "{again}");
        let found = window.ask(&Question::span(span));
        let Memory::Recorded { spans: found, .. } = found else { return Err(format!("{found:?}").into()) };
        assert!(matches!(&found[..], [Whereabouts::Discarded { reason, .. }] if reason == WHY), "{found:?}");
    }
    assert!(matches!(window.ask(&Question::text(SECRET)), Memory::Unknown { .. }), "never a no");
    let mut search = Search::new(&window)?;
    assert!(search.update(&window)?.unreadable.is_empty());
    assert!(search.find(&window, "quux", 9)?.is_empty());
    let Fidelity::Lossy { since, cause: Loss::Mutated, .. } = window.fidelity() else { return Err("lossy".into()) };

    let history = History::read(store, &EpisodeId::new("e"))?;
    let entry = history.entries().iter().find(|entry| entry.record == since).ok_or("no such record")?;
    let logged = |happening: &Happening| {
        matches!(happening, Happening::Redacted { spans: of, reason, recovery, authority: None }
        if of == spans && reason == WHY && recovery == HOW)
    };
    assert!(entry.happenings.iter().any(logged), "{entry:?}");
    for &span in spans {
        let (_, standing) = history.span(span).ok_or("on record")?;
        assert_eq!(standing, Standing::Gone { reason: WHY.into(), recovery: HOW.into() });
    }
    assert_eq!(history.fidelity(), window.fidelity());
    assert!(!everything(store, "e")?.contains(SECRET));
    assert!(matches!(
        store.get(Blob::new(secret()).digest()),
        Err(StoreError::Sealed { .. } | StoreError::Missing { .. })
    ));
    let verified = audit::verify(store, &EpisodeId::new("e"), |_| {});
    assert!(verified.faults.is_empty(), "{:?}", verified.faults);
    assert_eq!(verified.sealed, sealed);

    drop(window.lanes().externalize().wait()?);
    let (before, utilization, fidelity) = (shown(&window.render()), window.utilization(), window.fidelity());
    assert_eq!(History::read(store, &EpisodeId::new("e"))?.utilization(), utilization);
    let resumed = Windowed::resume_with(store.clone(), episode("e"), OneByteAToken)?;
    assert_eq!(shown(&resumed.render()), before);
    assert_eq!((resumed.utilization(), resumed.fidelity()), (utilization, fidelity));
    consistent(&resumed);
    assert!(spans.iter().all(|span| matches!(resumed.recall(*span).wait(), Err(RecallError::Discarded { .. }))));
    Ok(())
}

// Wherever it is.

#[test]
fn a_resident_text_gives_way_to_a_notice() -> Outcome {
    let store = memory();
    let mut window = open(store.clone())?;
    let (key, other) = (window.lanes().work.push(secret())?, window.lanes().work.push("port 8080")?);
    drop(window.lanes().externalize().wait()?);
    let redacted = redact(&mut window, key)?;
    assert_eq!((redacted.spans(), redacted.summaries()), (&[key][..], &[][..]));
    let notice = format!("[{key} work: removed for good: {WHY}; to recover: {HOW}]");
    assert_eq!(texts(&window.render()), [notice.as_str(), "port 8080"]);
    assert_eq!(window.render()[0].shown(), Shown::Discarded(key));
    assert_eq!(window.recall(other).wait()?.content().as_text(), Some("port 8080"));
    gone(window, &store, &[key], 1)
}

#[test]
fn a_pointer_gives_way_to_a_notice() -> Outcome {
    let store = memory();
    let mut window = open(store.clone())?;
    let key = window.lanes().work.push(secret())?;
    window.lanes().externalize().wait()?.work.evict(key).wait()?;
    redact(&mut window, key)?;
    assert_eq!(window.render().iter().map(Message::shown).collect::<Vec<_>>(), [Shown::Discarded(key)]);
    assert!(window.lanes().work.evicted().is_empty());
    let restored = window.lanes().work.restore(key).wait();
    assert!(matches!(restored, Err(RestoreError::Selection(SelectionError::Discarded { .. }))));
    gone(window, &store, &[key], 1)
}

/// First, in the middle, last, and alone of a pointer that neighbours share.
#[test]
fn a_shared_pointer_goes_on_for_the_others() -> Outcome {
    for place in 0..4_usize {
        let store = memory();
        let mut window = open(store.clone())?;
        let lanes = window.lanes();
        let text = |at| if at == place { secret() } else { format!("{at} {}", "y".repeat(200)) };
        let ids = (0..4).map(|at| lanes.work.push(text(at))).collect::<Result<Vec<_>, _>>()?;
        lanes.externalize().wait()?.work.evict(&ids[..]).wait()?;
        redact(&mut window, ids[place])?;
        let mut shown = Vec::new();
        match place {
            0 => shown.extend([Shown::Discarded(ids[0]), Shown::Pointer(ids[1], ids[3])]),
            1 => {
                shown.extend([Shown::Pointer(ids[0], ids[0]), Shown::Discarded(ids[1]), Shown::Pointer(ids[2], ids[3])])
            }
            2 => {
                shown.extend([Shown::Pointer(ids[0], ids[1]), Shown::Discarded(ids[2]), Shown::Pointer(ids[3], ids[3])])
            }
            _ => shown.extend([Shown::Pointer(ids[0], ids[2]), Shown::Discarded(ids[3])]),
        }
        assert_eq!(window.render().iter().map(Message::shown).collect::<Vec<_>>(), shown);
        consistent(&window);
        let others: Vec<_> = ids.iter().filter(|id| **id != ids[place]).copied().collect();
        assert_eq!(window.lanes().work.restore(&others[..]).wait()?, others);
        consistent(&window);
        // They fold again, and not over what is gone.
        window.lanes().externalize().wait()?.work.evict(&others[..]).wait()?;
        assert_eq!(window.render().iter().map(Message::shown).collect::<Vec<_>>(), shown);
        gone(window, &store, &[ids[place]], 1)?;
    }
    Ok(())
}

#[test]
fn a_source_of_a_summary_leaves_and_the_summary_is_named() -> Outcome {
    let store = memory();
    let mut window = open(store.clone())?;
    let lanes = window.lanes();
    let (key, other) = (lanes.work.push(secret())?, lanes.work.push("z".repeat(200))?);
    let lanes = lanes.externalize().wait()?;
    let by = lanes.work.summarize([key, other], summary("the environment")?, &lanes.recap).wait()?;
    drop(lanes);
    let mut search = Search::new(&window)?;
    search.update(&window)?;
    assert_eq!(search.find(&window, "quux", 9)?.len(), 1);
    let before = texts(&window.render());
    let redacted = redact(&mut window, key)?;
    assert_eq!((redacted.spans(), redacted.summaries()), (&[key][..], &[by][..]));
    assert_eq!(texts(&window.render()), before, "the summary stays");
    assert!(search.find(&window, "quux", 9)?.is_empty(), "nor before the update");
    assert_eq!(search.update(&window)?.removed, 1);
    consistent(&window);

    // What comes back is the other source, and the notice.
    assert_eq!(window.lanes().recap.reground(by).wait()?, [key, other]);
    let [notice, text] = texts(&window.render()).try_into().map_err(|_| "two")?;
    assert!(notice.contains("removed for good") && text == "z".repeat(200), "{notice}");
    gone(window, &store, &[key], 1)
}

/// A summary that repeats the secret is redacted as well, and the way back to its sources stays open.
#[test]
fn a_redacted_summary_still_gives_its_sources_back() -> Outcome {
    for evicted in [false, true] {
        let store = memory();
        let mut window = open(store.clone())?;
        let lanes = window.lanes();
        let sources = [lanes.work.push("a".repeat(300))?, lanes.work.push("b".repeat(300))?];
        let lanes = lanes.externalize().wait()?;
        let by = lanes.work.summarize(sources, summary(&format!("it has {SECRET}"))?, &lanes.recap).wait()?;
        if evicted {
            lanes.recap.evict(by).wait()?;
        }
        drop(lanes);
        let redacted = window.lanes().recap.redact(by, why()?).wait()?;
        assert_eq!((redacted.spans(), redacted.summaries()), (&[by][..], &[][..]));
        assert_eq!(window.render().iter().map(Message::shown).collect::<Vec<_>>(), [Shown::Discarded(by)]);
        consistent(&window);
        let resumed = Windowed::resume_with(store.clone(), episode("e"), OneByteAToken)?;
        assert_eq!(shown(&resumed.render()), shown(&window.render()));
        let mut window = resumed;
        assert_eq!(window.lanes().recap.reground(by).wait()?, sources);
        assert_eq!(window.render().iter().map(Message::shown).collect::<Vec<_>>(), sources.map(Shown::Span));
        gone(window, &store, &[by], 1)?;
    }
    Ok(())
}

#[test]
fn a_summary_that_left_the_window_leaves_the_store() -> Outcome {
    let store = memory();
    let mut window = open(store.clone())?;
    let lanes = window.lanes();
    let source = lanes.work.push("a".repeat(300))?;
    let lanes = lanes.externalize().wait()?;
    let first = lanes.work.summarize(source, summary(&format!("it has {SECRET} {}", "c".repeat(99)))?, &lanes.recap);
    let first = first.wait()?;
    let second = lanes.recap.escalate(first, summary("it has a key")?, Escalation::because("no room")?).wait()?;
    drop(lanes);
    let before = shown(&window.render());
    let redacted = window.lanes().recap.redact(first, why()?).wait()?;
    assert_eq!((redacted.spans(), redacted.summaries()), (&[first][..], &[second][..]));
    assert_eq!(shown(&window.render()), before, "it was not shown");
    assert_eq!(window.lanes().recap.reground(second).wait()?, [source]);
    window.lanes().recap.redact(second, why()?).wait()?;
    assert_eq!(redact(&mut window, source)?.summaries(), [], "both are gone already");
    assert!(!everything(&store, "e")?.contains(SECRET));
    assert!(matches!(window.fidelity(), Fidelity::Lossy { cause: Loss::Escalated, .. }), "the first cause");
    let resumed = Windowed::resume_with(store, episode("e"), OneByteAToken)?;
    assert_eq!((shown(&resumed.render()), resumed.fidelity()), (shown(&window.render()), window.fidelity()));
    consistent(&resumed);
    Ok(())
}

/// What the store never had leaves no trace there, not even its digest.
#[test]
fn a_text_that_was_never_stored_is_never_stored() -> Outcome {
    let store = memory();
    let mut window = open(store.clone())?;
    let (key, other) = (window.lanes().work.push(secret())?, window.lanes().work.push("port 8080")?);
    assert_eq!(redact(&mut window, key)?.spans(), [key]);
    assert_eq!((window.uncommitted().spans, window.unsaved()[0].span), (1, other));
    let digest = *Blob::new(secret()).digest();
    assert!(matches!(store.get(&digest), Err(StoreError::Missing { .. })));
    let history = History::read(&store, &EpisodeId::new("e"))?;
    assert_eq!(history.span(key).and_then(|(facts, _)| facts.sha256), None);
    gone(window, &store, &[key], 0)
}

#[test]
fn its_digest_is_recorded_when_that_is_asked_for() -> Outcome {
    let store = memory();
    let mut window = open(store.clone())?;
    let ids = [window.lanes().work.push(secret())?, window.lanes().work.push(format!("2 {SECRET}"))?];
    window.lanes().work.redact(ids[0], why()?.with_digest()).wait()?;
    window.lanes().work.discard(ids[1], why()?.with_digest()).wait()?;
    let third = window.lanes().work.push(format!("3 {SECRET}"))?;
    window.lanes().work.discard(third, why()?).wait()?;
    let history = History::read(&store, &EpisodeId::new("e"))?;
    let digest = |span| history.span(span).and_then(|(facts, _)| facts.sha256);
    assert_eq!(digest(ids[0]), Some(*Blob::new(secret()).digest()));
    assert_eq!(digest(ids[1]), Some(*Blob::new(format!("2 {SECRET}")).digest()));
    assert_eq!(digest(third), None);
    assert!(!everything(&store, "e")?.contains(SECRET));
    Ok(())
}

/// Stored, pointed at, fresh, in three lanes: one text, one redaction.
#[test]
fn every_span_with_the_text_goes_with_it() -> Outcome {
    let store = memory();
    let mut window = open(store.clone())?;
    let lanes = window.lanes();
    let (one, two, three) = (lanes.work.push(secret())?, lanes.decisions.push(secret())?, lanes.work.push(secret())?);
    lanes.work.push("between")?;
    let lanes = lanes.externalize().wait()?;
    lanes.work.evict(one).wait()?;
    let by = lanes.work.summarize(three, summary("s")?, &lanes.recap).wait()?;
    drop(lanes);
    let fresh = window.lanes().work.push(secret())?;
    // By any of them.
    let redacted = window.lanes().decisions.redact(two, why()?).wait()?;
    assert_eq!((redacted.spans(), redacted.summaries()), (&[one, two, three, fresh][..], &[by][..]));
    assert!(window.unsaved().is_empty());
    gone(window, &store, &[one, two, three, fresh], 1)
}

/// Several texts, in one commit or none.
#[test]
fn what_is_named_together_goes_together() -> Outcome {
    let store = memory();
    let mut window = open(store.clone())?;
    let text = |n: u32| format!("{n} {}", secret());
    let lanes = window.lanes();
    let ids = [lanes.work.push(text(1))?, lanes.work.push(text(2))?, lanes.work.push(text(3))?];
    let (other, held) = (lanes.work.push(text(4))?, lanes.schema.push(text(4))?);
    let lanes = lanes.externalize().wait()?;
    let by = lanes.work.summarize(ids[0], summary(SECRET)?, &lanes.recap).wait()?;
    let second = lanes.work.summarize(ids[1], summary("a key")?, &lanes.recap).wait()?;
    drop(lanes);
    let fresh = window.lanes().work.push(text(3))?;
    let records = window.records();
    let refused = window.lanes().work.redact([ids[0], other], why()?).wait();
    assert!(matches!(refused, Err(RedactError::Protected { span, holder, .. }) if (span, holder) == (other, held)));
    let none = window.lanes().work.redact([], why()?).wait();
    assert!(matches!(none, Err(RedactError::Selection(SelectionError::Empty))));
    assert_eq!(window.records(), records);

    let all = [by, ids[2], ids[1], ids[0]];
    let redacted = window.redact_protected(all, why()?, Authority::of("owner")?).wait()?;
    assert_eq!(redacted.spans(), [ids[0], ids[1], ids[2], by, fresh]);
    assert_eq!(redacted.summaries(), [second], "of those that stay");
    assert_eq!(window.records(), records + 1);
    consistent(&window);
    window.redact_protected(held, why()?, Authority::of("owner")?).wait()?;
    assert!(!everything(&store, "e")?.contains(SECRET));
    let resumed = Windowed::resume_with(store, episode("e"), OneByteAToken)?;
    assert_eq!(shown(&resumed.render()), shown(&window.render()));
    Ok(())
}

#[test]
fn nothing_is_written_where_a_protected_lane_has_the_text() -> Outcome {
    let store = memory();
    let mut window = open(store.clone())?;
    let lanes = window.lanes();
    let (id, holder) = (lanes.work.push(secret())?, lanes.schema.push(secret())?);
    for fresh in [true, false] {
        let (records, before) = (window.records(), shown(&window.render()));
        let error = redact(&mut window, id).err().ok_or("it was redacted")?;
        assert!(
            matches!(error, RedactError::Protected { span, holder: of, lane: "schema" } if (span, of) == (id, holder))
        );
        assert_eq!(
            error.to_string(),
            "the text of s1 is also s2 in `schema`, which is protected: its owner can redact both, with \
             `Window::redact_protected`"
        );
        assert_eq!((window.records(), shown(&window.render())), (records, before));
        assert_eq!(window.fidelity(), Fidelity::Reversible);
        if fresh {
            drop(window.lanes().externalize().wait()?);
        }
    }
    assert_eq!(store.get(Blob::new(secret()).digest())?, secret().as_bytes());
    Ok(())
}

/// Of every protected lane and of what never leaves, with the name of who did it.
#[test]
fn its_owner_redacts_protected_text_and_is_logged() -> Outcome {
    let store = memory();
    let mut window = open(store.clone())?;
    let lanes = window.lanes();
    let text = |n: u32| format!("{n} {}", secret());
    let ids = [
        lanes.rules.push(text(0))?,
        lanes.schema.push(text(1))?,
        lanes.holds.push(text(2))?,
        lanes.limits.push(text(3))?,
        lanes.target.push(text(4))?,
        lanes.failed.push(text(5))?,
        lanes.work.push(text(5))?,
    ];
    let lanes = lanes.externalize().wait()?;
    lanes.schema.evict(ids[1]).wait()?;
    drop(lanes);
    for at in 0..6 {
        let authority = Authority::of(format!("owner {at}"))?;
        let redacted = window.redact_protected(ids[at], why()?, authority).wait()?;
        assert_eq!(redacted.spans(), &ids[at..if at == 5 { 7 } else { at + 1 }]);
        consistent(&window);
    }
    let history = History::read(&store, &EpisodeId::new("e"))?;
    let owner = |happening: &Happening| match happening {
        Happening::Redacted { authority, .. } => authority.clone(),
        _ => None,
    };
    let owners: Vec<_> = history.entries().iter().flat_map(|entry| &entry.happenings).filter_map(owner).collect();
    assert_eq!(owners, (0..6).map(|at| format!("owner {at}")).collect::<Vec<_>>());
    assert!(!everything(&store, "e")?.contains(SECRET));
    let resumed = Windowed::resume_with(store, episode("e"), OneByteAToken)?;
    assert_eq!(shown(&resumed.render()), shown(&window.render()));
    assert!(Authority::of(" \n").is_err());
    Ok(())
}

/// A call's result: the turn that called keeps its place and its pair.
#[test]
fn a_part_of_an_exchange_is_redacted_alone() -> Outcome {
    for (pending, evicted) in [(true, false), (false, false), (false, true)] {
        let store = memory();
        let mut window = open(store.clone())?;
        let lanes = window.lanes();
        let turn = lanes.work.push(NewSpan::model("cat .env").calls(["c1", "c2"]))?;
        let key = lanes.work.push(NewSpan::tool("shell", secret()).answers("c1"))?;
        let answer = || NewSpan::tool("shell", "r".repeat(300)).answers("c2");
        let mut parts = vec![turn, key];
        if !pending {
            parts.push(lanes.work.push(answer())?);
        }
        let lanes = lanes.externalize().wait()?;
        if evicted {
            lanes.work.evict(turn).wait()?;
        }
        drop(lanes);
        redact(&mut window, key)?;
        consistent(&window);
        if pending {
            parts.push(window.lanes().work.push(answer())?);
        }
        if evicted {
            assert_eq!(window.lanes().work.restore(parts[2]).wait()?, [turn, parts[2]], "the rest is still one");
        } else {
            let left = window.lanes().externalize().wait()?.work.evict(turn).wait()?;
            assert_eq!(left.iter().map(keepspan::Tombstone::span).collect::<Vec<_>>(), [turn, parts[2]]);
        }
        assert!(window.open_calls().is_empty());
        gone(window, &store, &[key], 1)?;
    }
    Ok(())
}

// Before and after.

/// What the model saw then is not shown now, and nothing else of that turn is lost.
#[test]
fn earlier_turns_show_the_notice_and_later_ones_what_they_saw() -> Outcome {
    for stored in [false, true] {
        let store = memory();
        let mut window = open(store.clone())?;
        let lanes = window.lanes();
        let (key, other) = (lanes.work.push(secret())?, lanes.work.push("y".repeat(200))?);
        let mut seen = vec![texts(&window.render())];
        window.lanes().work.push(NewSpan::model("one"))?;
        if stored {
            window.lanes().externalize().wait()?.work.evict([key, other]).wait()?;
        }
        seen.push(texts(&window.render()));
        window.lanes().work.push(NewSpan::model("two"))?;
        redact(&mut window, key)?;
        seen.push(texts(&window.render()));
        window.lanes().work.push(NewSpan::model("three"))?;
        drop(window.lanes().externalize().wait()?);

        let history = History::read(&store, &EpisodeId::new("e"))?;
        let notice = format!("[{key} work: removed for good: {WHY}; to recover: {HOW}]");
        for (turn, seen) in (1..).zip(&seen) {
            let then = history.at_turn(&store, turn)?;
            let seen: Vec<_> =
                seen.iter().map(|text| if text.contains(SECRET) { notice.clone() } else { text.clone() }).collect();
            assert_eq!(texts(&then.messages), seen, "turn {turn}");
            assert_eq!(then.utilization, then.messages.iter().map(|message| u64::from(message.tokens())).sum::<u64>());
        }
    }
    Ok(())
}

/// The record of why is written with the seal or not at all.
#[test]
fn a_commit_that_fails_leaves_all_as_it_was() -> Outcome {
    let store = std::sync::Arc::new(Faulty::default());
    let mut window = open(store.clone())?;
    let lanes = window.lanes();
    let ids = [lanes.work.push(secret())?, lanes.work.push("y".repeat(200))?];
    lanes.externalize().wait()?.work.evict(ids).wait()?;
    let fresh = window.lanes().work.push(secret())?;
    let before = (shown(&window.render()), window.utilization(), window.records(), window.uncommitted());
    // The read that looks whether there is something to seal, and the commit.
    for call in 1..=2 {
        store.arm(call, Fault::Fails);
        assert!(matches!(redact(&mut window, ids[0]), Err(RedactError::Commit(CommitError::Store(_)))), "call {call}");
        assert_eq!((shown(&window.render()), window.utilization(), window.records(), window.uncommitted()), before);
        assert_eq!(window.fidelity(), Fidelity::Reversible);
        assert_eq!(window.recall(ids[0]).wait()?.content().as_text(), Some(&*secret()));
    }
    // A damaged blob is no reason to keep it.
    store.arm(1, Fault::Damaged);
    assert_eq!(redact(&mut window, ids[0])?.spans(), [ids[0], fresh]);
    assert!(matches!(store.get(Blob::new(secret()).digest()), Err(StoreError::Sealed { .. })));
    Ok(())
}

#[test]
fn a_lost_answer_is_asked_for() -> Outcome {
    let store = std::sync::Arc::new(Faulty::default());
    let mut window = open(store.clone())?;
    let key = window.lanes().work.push(secret())?;
    drop(window.lanes().externalize().wait()?);
    store.arm(2, Fault::Unacknowledged);
    assert!(matches!(redact(&mut window, key), Err(RedactError::Commit(_))));
    window.recover()?;
    assert!(matches!(window.recall(key).wait(), Err(RecallError::Discarded { .. })));
    assert!(!texts(&window.render()).concat().contains(SECRET));
    consistent(&window);
    Ok(())
}

// Again, and elsewhere.

/// The model prints the key again after it was redacted: the store refuses, the message says which span and what to do, and
/// then the agent goes on.
#[test]
fn the_same_text_again_is_refused_by_name_and_redacted_again() -> Outcome {
    let store = memory();
    let mut window = open(store.clone())?;
    let first = window.lanes().work.push(secret())?;
    drop(window.lanes().externalize().wait()?);
    redact(&mut window, first)?;
    let other = window.lanes().work.push("port 8080")?;
    let again = window.lanes().work.push(secret())?;
    let last = window.lanes().work.push("port 9090")?;
    for _ in 0..2 {
        let error = window.lanes().externalize().wait().err().ok_or("it was stored")?;
        let CommitError::Sealed { span, digest } = error else { return Err(error.into()) };
        assert_eq!((span, digest), (again, *Blob::new(secret()).digest()));
        let said = error.to_string();
        assert!(said.contains("the text of s3 was redacted") && said.contains("redact s3 as well"), "{said}");
        assert_eq!(window.uncommitted().spans, 3, "nothing is lost");
        consistent(&window);
    }
    let discarded = window.lanes().work.discard(again, why()?).wait();
    assert!(matches!(discarded, Err(DiscardError::InStore { .. })), "the way out is one");
    assert_eq!(redact(&mut window, again)?.spans(), [again]);
    drop(window.lanes().externalize().wait()?);
    assert_eq!(window.uncommitted().spans, 0);
    consistent(&window);
    assert_eq!(window.recall(other).wait()?.content().as_text(), Some("port 8080"));

    let history = History::read(&store, &EpisodeId::new("e"))?;
    assert_eq!(history.utilization(), window.utilization());
    assert!(!everything(&store, "e")?.contains(SECRET));
    assert!(audit::verify(&store, &EpisodeId::new("e"), |_| {}).faults.is_empty());
    let resumed = Windowed::resume_with(store, episode("e"), OneByteAToken)?;
    assert_eq!(shown(&resumed.render()), shown(&window.render()));
    assert_eq!(resumed.recall(last).wait()?.content().as_text(), Some("port 9090"));
    consistent(&resumed);
    Ok(())
}

/// The process ends after the store refused the text and before anybody redacted it again.
#[test]
fn a_stop_before_the_second_redaction_loses_nothing_else() -> Outcome {
    let store = memory();
    let mut window = open(store.clone())?;
    let first = window.lanes().work.push(secret())?;
    drop(window.lanes().externalize().wait()?);
    redact(&mut window, first)?;
    let (other, again) = (window.lanes().work.push("port 8080")?, window.lanes().work.push(secret())?);
    assert!(window.lanes().externalize().wait().is_err());
    drop(window);
    let mut resumed = Windowed::resume_with(store.clone(), episode("e"), OneByteAToken)?;
    assert_eq!(resumed.recall(other).wait()?.content().as_text(), Some("port 8080"));
    assert!(matches!(resumed.recall(again).wait(), Err(RecallError::Discarded { .. })));
    consistent(&resumed);
    resumed.lanes().work.push("on")?;
    drop(resumed.lanes().externalize().wait()?);
    assert!(audit::verify(&store, &EpisodeId::new("e"), |_| {}).faults.is_empty());
    Ok(())
}

/// Blobs are shared, so what one episode redacts is gone for all: each says so, and loses nothing else.
#[test]
fn another_episode_with_the_text_says_that_it_is_gone() -> Outcome {
    let store = memory();
    let mut mine = open(store.clone())?;
    let mut theirs = Windowed::open_with(store.clone(), episode("theirs"), OneByteAToken)?;
    let lanes = theirs.lanes();
    let (key, port) = (lanes.schema.push(secret())?, lanes.work.push("port 8080")?);
    let (pointed, beside) = (lanes.work.push(secret())?, lanes.work.push("y".repeat(300))?);
    let lanes = lanes.externalize().wait()?;
    lanes.work.evict([pointed, beside]).wait()?;
    drop(lanes);
    let never = mine.lanes().work.push(secret())?;
    redact(&mut mine, never)?;
    assert!(matches!(store.get(Blob::new(secret()).digest()), Err(StoreError::Sealed { .. })), "it was theirs alone");

    // The window that is open has its own copy, and learns of it where it asks the store.
    assert_eq!(theirs.fidelity(), Fidelity::Reversible);
    let error = theirs.recall(pointed).wait().err().ok_or("it was recalled")?;
    assert!(error.to_string().starts_with("the text of s1 was redacted, in this or another episode"), "{error}");
    assert!(matches!(theirs.fidelity(), Fidelity::Lossy { cause: Loss::Mutated, .. }));
    drop(theirs);

    let mut resumed = Windowed::resume_with(store.clone(), episode("theirs"), OneByteAToken)?;
    let Fidelity::Lossy { since, cause: Loss::Mutated, .. } = resumed.fidelity() else { return Err("lossy".into()) };
    let history = History::read(&store, &EpisodeId::new("theirs"))?;
    let entry = history.entries().iter().find(|entry| entry.record == since).ok_or("no such record")?;
    assert!(matches!(entry.happenings[..], [Happening::Resumed { .. }, .., Happening::Redacted { .. }]), "{entry:?}");
    consistent(&resumed);
    let shown = texts(&resumed.render());
    assert!(shown[0].contains("removed for good: the store has its text sealed") && shown[1] == "port 8080");
    assert!(matches!(resumed.recall(key).wait(), Err(RecallError::Discarded { .. })));
    assert_eq!(resumed.recall(port).wait()?.content().as_text(), Some("port 8080"));

    // Beside a pointer whose text is gone nothing comes back, until that is redacted here as well.
    let both = resumed.lanes().work.restore([pointed, beside]).wait().err().ok_or("it came back")?;
    assert!(both.to_string().contains("redact s3 as well"), "{both}");
    redact(&mut resumed, pointed)?;
    assert_eq!(resumed.lanes().work.restore(beside).wait()?, [beside]);
    consistent(&resumed);
    assert!(audit::verify(&store, &EpisodeId::new("theirs"), |_| {}).faults.is_empty());
    Ok(())
}

/// A text comes back, the answer is lost, and before anybody asks another episode redacts it.
#[test]
fn what_is_gone_when_a_lost_answer_is_asked_for_is_a_notice() -> Outcome {
    let store = std::sync::Arc::new(Faulty::default());
    let mut mine = open(store.clone())?;
    let mut theirs = Windowed::open_with(store.clone(), episode("theirs"), OneByteAToken)?;
    let key = theirs.lanes().work.push(secret())?;
    theirs.lanes().externalize().wait()?.work.evict(key).wait()?;
    store.arm(2, Fault::Unacknowledged);
    assert!(theirs.lanes().work.restore(key).wait().is_err());
    let same = mine.lanes().work.push(secret())?;
    redact(&mut mine, same)?;
    assert!(matches!(theirs.recover()?, keepspan::Recovered::Written { .. }));
    assert_eq!(theirs.render().iter().map(Message::shown).collect::<Vec<_>>(), [Shown::Discarded(key)]);
    consistent(&theirs);
    assert!(matches!(theirs.recall(key).wait(), Err(RecallError::Discarded { .. })));
    let resumed = Windowed::resume_with(store, episode("theirs"), OneByteAToken)?;
    assert_eq!(shown(&resumed.render()), shown(&theirs.render()));
    Ok(())
}

// Who may, and how it is asked.

#[test]
fn a_span_is_redacted_by_its_own_lane_and_has_to_be_there() -> Outcome {
    let mut window = open(memory())?;
    let id = window.lanes().decisions.push("because")?;
    let other = redact(&mut window, id).err().ok_or("it was redacted")?;
    assert_eq!(other.to_string(), "s1 is in lane `decisions` and not in `work`: call the method of its own lane");
    let unborn = SpanId::parse("s99").ok_or("an id")?;
    let unknown = redact(&mut window, unborn);
    assert!(matches!(unknown, Err(RedactError::Selection(SelectionError::Unknown { span, .. })) if span == unborn));
    Ok(())
}

/// Only its number is known.
#[test]
fn a_span_that_no_commit_had_has_no_text_to_redact() -> Outcome {
    let store = memory();
    let mut window = open(store.clone())?;
    let lost = window.lanes().work.push("lost")?;
    let key = window.lanes().work.push(secret())?;
    redact(&mut window, key)?;
    drop(window);
    let mut window = Windowed::resume_with(store, episode("e"), OneByteAToken)?;
    assert_eq!(window.missing(), [lost]);
    let refused = redact(&mut window, lost);
    assert!(matches!(refused, Err(RedactError::Selection(SelectionError::Unrecorded { span })) if span == lost));
    let owner = window.redact_protected(lost, why()?, Authority::of("owner")?).wait();
    assert!(matches!(owner, Err(RedactError::Selection(SelectionError::Unrecorded { span })) if span == lost));
    Ok(())
}

/// The report of a pass that took it is undone span by span.
#[test]
fn an_undo_says_what_does_not_come_back() -> Outcome {
    let mut window = Windowed::open_with(memory(), Episode::new("e", "p").budget(2_000), OneByteAToken)?;
    let lanes = window.lanes();
    let (key, other) = (lanes.work.push(secret())?, lanes.work.push("y".repeat(800))?);
    lanes.work.push("z".repeat(800))?;
    let refusal = lanes.externalize().wait()?.admit().err().ok_or("admitted")?;
    let keepspan::FellBack::Freed(report) = refusal.fall_back(keepspan::OldestFirst).wait()? else {
        return Err("nothing was freed".into());
    };
    let left: Vec<_> = report.tombstones().iter().map(keepspan::Tombstone::span).collect();
    assert_eq!(left, [key, other]);
    redact(&mut window, key)?;
    let undone = window.undo(&report).wait();
    assert!(matches!(undone, Err(RestoreError::Selection(SelectionError::Discarded { span })) if span == key));
    assert_eq!(window.lanes().work.restore(other).wait()?, [other]);
    consistent(&window);
    Ok(())
}

// Programs.

/// One of a few texts, so that most come more than once.
fn text(pick: u8) -> String {
    format!("text {} {}", pick % 5, "x".repeat(100))
}

/// One move; what is not possible then is none.
fn act(window: &mut Windowed, kind: u8, pick: u8) -> Outcome {
    let chosen = |ids: Vec<SpanId>| -> Vec<SpanId> {
        let skipped = usize::from(pick).checked_rem(ids.len()).unwrap_or_default();
        ids.into_iter().skip(skipped).take(1 + usize::from(pick % 3)).collect()
    };
    match kind {
        0..6 => drop(window.lanes().work.push(NewSpan::tool("read", text(pick)))?),
        6 => drop(window.lanes().decisions.push(text(pick))?),
        7 => drop(window.lanes().schema.push(text(pick))?),
        8 => drop(window.lanes().work.push(NewSpan::model(text(pick)))?),
        9 => drop(window.lanes().externalize().wait()?),
        10 => {
            let lanes = window.lanes().externalize().wait()?;
            lanes.work.evict(chosen(lanes.work.resident())).wait()?;
        }
        11 => {
            let lanes = window.lanes();
            lanes.work.restore(chosen(lanes.work.evicted())).wait()?;
        }
        12 => {
            let lanes = window.lanes().externalize().wait()?;
            lanes.work.summarize(chosen(lanes.work.resident()), summary("s")?, &lanes.recap).wait()?;
        }
        13 => {
            let lanes = window.lanes();
            let by = chosen(lanes.recap.resident()).first().copied().ok_or("none")?;
            lanes.recap.reground(by).wait()?;
        }
        14 => {
            let lanes = window.lanes();
            let by = chosen(lanes.recap.resident()).first().copied().ok_or("none")?;
            lanes.recap.redact(by, why()?).wait()?;
        }
        15..18 => {
            let lanes = window.lanes();
            let all = [lanes.work.resident(), lanes.work.evicted()].concat();
            let span = chosen(all).first().copied().ok_or("none")?;
            lanes.work.redact(span, why()?).wait()?;
        }
        _ => {
            let span = SpanId::parse(&format!("s{}", 1 + pick % 40)).ok_or("an id")?;
            window.redact_protected(span, why()?, Authority::of("owner")?).wait()?;
        }
    }
    Ok(())
}

/// Writes all, and redacts again what the store was told not to keep.
fn settle(window: &mut Windowed) -> Outcome {
    while let Err(error) = window.lanes().externalize().wait().map(drop) {
        let CommitError::Sealed { span, .. } = error else { return Err(error.into()) };
        window.redact_protected(span, why()?, Authority::of("owner")?).wait()?;
    }
    Ok(())
}

fn checked(store: &Shared, window: &Windowed) -> Outcome {
    let history = History::read(store, &EpisodeId::new("e"))?;
    assert_eq!((history.utilization(), history.fidelity()), (window.utilization(), window.fidelity()));
    for (facts, standing) in history.spans() {
        let Some(blob) = facts.sha256.map(|digest| store.get(&digest)) else { continue };
        let gone = matches!(standing, Standing::Gone { .. });
        assert_eq!(matches!(blob, Err(StoreError::Sealed { .. })), gone, "{}: {standing:?}", facts.span);
    }
    for turn in 1..=u64::try_from(history.turns().len())? {
        let then = history.at_turn(store, turn)?;
        assert_eq!(then.utilization, then.messages.iter().map(|message| u64::from(message.tokens())).sum::<u64>());
        for (facts, standing) in history.spans() {
            let shown = then.messages.iter().any(|message| message.shown() == Shown::Span(facts.span));
            assert!(!shown || !matches!(standing, Standing::Gone { .. }), "{} is shown at turn {turn}", facts.span);
        }
    }
    let verified = audit::verify(store, &EpisodeId::new("e"), |_| {});
    assert!(verified.faults.is_empty(), "{:?}", verified.faults);
    Ok(())
}

proptest! {
    #[test]
    fn whatever_happens_the_store_keeps_what_is_there_and_nothing_that_is_gone(
        moves in prop::collection::vec((0..19_u8, any::<u8>()), 1..80), stops in 1..30_usize,
    ) {
        let failed = |error: Box<dyn std::error::Error>| TestCaseError::fail(error.to_string());
        let store = memory();
        let mut window = open(store.clone()).map_err(|error| failed(error.into()))?;
        for (at, (kind, pick)) in moves.into_iter().enumerate() {
            let _ = act(&mut window, kind, pick);
            consistent(&window);
            if at % stops == stops - 1 {
                settle(&mut window).map_err(failed)?;
                consistent(&window);
                checked(&store, &window).map_err(failed)?;
                let before = (shown(&window.render()), window.utilization(), window.fidelity());
                window = Windowed::resume_with(store.clone(), episode("e"), OneByteAToken)
                    .map_err(|error| failed(error.into()))?;
                prop_assert_eq!((shown(&window.render()), window.utilization(), window.fidelity()), before);
            }
        }
    }
}

/// A recalled excerpt is a span of its own, with a part of the text.
#[test]
fn excerpts_of_what_is_redacted_are_named() -> Outcome {
    use keepspan::tool::{Anthropic, RecallCall};

    let mut window = Window::<Agent, _>::open(memory(), Episode::new("e", "p"))?;
    let lanes = window.lanes();
    let (key, other) =
        (lanes.work.push(format!("API_KEY=sk-test-000\n{}", "x\n".repeat(90)))?, lanes.work.push("b".repeat(90))?);
    lanes.externalize().wait()?.work.evict([key, other]).wait()?;
    let mut recalled = Vec::new();
    for span in [key, other] {
        let input = serde_json::json!({ "span": span.to_string(), "from_line": 1, "to_line": 1, "search": null });
        let turn = serde_json::json!({ "type": "message", "stop_reason": "tool_use",
            "content": [{ "type": "tool_use", "id": "t1", "name": "recall_span", "input": input }] });
        window.lanes().work.push(NewSpan::model(turn.to_string()).calls(["t1"]))?;
        for call in RecallCall::read(Anthropic, &turn)? {
            let reply = window.answer_recall(&call, 2_000).wait()?;
            recalled.push(window.lanes().work.push(reply)?);
        }
    }
    let mutation = Mutation::new("a leaked key", "ask the vault")?;
    let redacted = window.lanes().work.redact(key, mutation.clone()).wait()?;
    assert_eq!((redacted.spans(), redacted.excerpts()), (&[key][..], &recalled[..1]));
    let rest = window.lanes().work.redact(redacted.excerpts(), mutation).wait()?;
    assert!(rest.excerpts().is_empty());
    assert!(
        !window.render().iter().any(|message| message.content().as_text().is_some_and(|text| text.contains("sk-test")))
    );
    Ok(())
}
