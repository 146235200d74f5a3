//! Exchanges as units, in all their states (rule R16), sealed turns, and what newer observations say of older ones. Faults that
//! users of other agents reported are named by their number.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
};

use keepspan::{
    AbandonError, Abandonment, ContextState, Digest, DiscardError, Episode, EpisodeId, EvictError, FallBackError,
    FellBack, Finish, Limits, Migration, ModelAnswer, Mutation, NewSpan, Offer, OldestFirst, OneByteAToken, OpenError,
    PushError, Recovered, RedactError, Refused, ResultState, ResumeError, Role, SelectionError, Shown, SpanId, Spans,
    SummarizeError, SummaryText, SupersededReads, Window,
    audit::{Happening, History},
    store::{Batch, Blob, MemoryStore, Store, StoreError},
    tool::{OpenAiChat, RecallCall},
};
use keepspan_tests::{Agent, Fault, Faulty, Seen, memory, spans};
use proptest::prelude::*;

type Checked<T = ()> = Result<T, Box<dyn std::error::Error>>;
type Windowed<S = MemoryStore> = Window<Agent, Arc<S>>;

fn episode(limits: Limits) -> Episode {
    Episode::new("e", "p").budget(limits)
}

fn wide() -> Limits {
    Limits::of(100_000).trigger(90_000).index(400).rationale(50).margin(50)
}

fn opened<S: Store>(store: Arc<S>, limits: Limits) -> Result<Windowed<S>, OpenError> {
    Window::open_with(store, episode(limits), OneByteAToken)
}

fn window() -> Result<Windowed, OpenError> {
    opened(memory(), wide())
}

fn resumed<S: Store>(store: Arc<S>, limits: Limits) -> Result<Windowed<S>, ResumeError> {
    Window::resume_with(store, episode(limits), OneByteAToken)
}

fn turn(calls: &[&str]) -> NewSpan {
    NewSpan::model("c".repeat(200)).calls(calls.iter().copied())
}

fn result(text: impl Into<String>) -> NewSpan {
    NewSpan::tool("run", text.into())
}

fn long(text: &str) -> String {
    format!("{text} {}", "r".repeat(200))
}

fn summary(text: &str) -> Result<SummaryText, keepspan::SummaryTextError> {
    ModelAnswer::new(Finish::Stop, text).try_into()
}

fn mutation() -> Result<Mutation, keepspan::Unexplained> {
    Mutation::new("a secret", "ask")
}

fn push<S>(window: &mut Windowed<S>, span: impl Into<NewSpan>) -> Result<SpanId, PushError> {
    window.lanes().work.push(span)
}

/// The spans that leave when this one does.
fn evicted(window: &mut Windowed, span: SpanId) -> Result<Vec<SpanId>, EvictError> {
    let lanes = window.lanes().externalize().wait()?;
    Ok(lanes.work.evict(span).wait()?.iter().map(|tombstone| tombstone.span()).collect())
}

fn fall_back(window: &mut Windowed) -> Checked<FellBack> {
    match window.lanes().externalize().wait()?.admit() {
        Ok(pass) => Ok(pass.fall_back(OldestFirst).wait()?),
        Err(refusal) => Ok(refusal.fall_back(OldestFirst).wait()?),
    }
}

fn refused(window: &mut Windowed) -> Checked<Refused> {
    let refusal = window.lanes().externalize().wait()?.admit().err().ok_or("admitted")?;
    Ok(refusal.into_reason())
}

fn open<S>(window: &Windowed<S>) -> Vec<(SpanId, String)> {
    window.open_calls().iter().map(|open| (open.span, open.call.to_string())).collect()
}

fn shown<S>(window: &Windowed<S>) -> Vec<Shown> {
    window.render().iter().map(|message| message.shown()).collect()
}

/// What each resident result is to its call.
fn states<S>(window: &Windowed<S>) -> Vec<ResultState> {
    window.render().iter().filter_map(|message| message.result()).collect()
}

/// Of the resident sealed spans, those whose seals are intact, and the others.
fn seals<S>(window: &Windowed<S>) -> (Vec<SpanId>, Vec<SpanId>) {
    let (mut intact, mut broken) = (Vec::new(), Vec::new());
    for message in window.render() {
        match (message.shown(), message.seal_intact()) {
            (Shown::Span(span), Some(true)) => intact.push(span),
            (Shown::Span(span), Some(false)) => broken.push(span),
            _ => {}
        }
    }
    (intact, broken)
}

/// The same episode in another store, which can be resumed without taking this one over.
fn copied<S: Store>(store: &S, window: &Windowed<S>) -> Checked<Arc<MemoryStore>> {
    let id = EpisodeId::new("e");
    let copy = memory();
    let texts = spans(window).into_iter().filter_map(|span| window.recall(span).wait().ok());
    let blobs = texts.map(|text| Blob::new(text.content().clone())).collect();
    Store::commit(&*copy, &Batch::new(id.clone(), 0, blobs, Store::read(store, &id, 0, u64::MAX)?))?;
    Ok(copy)
}

/// Commits what is pushed, and compares the window with what its log comes to.
fn same_after_resume<S: Store>(store: &S, window: &mut Windowed<S>, limits: Limits) -> Checked {
    drop(window.lanes().externalize().wait()?);
    let mut other = resumed(copied(store, window)?, limits)?;
    assert_eq!(Seen::of(window).difference(&Seen::of(&mut other)), None);
    Ok(())
}

// Intermediate results.

/// B053: the first response under the id of a call made a call that still ran look finished.
#[test]
fn an_interim_result_leaves_its_call_open() -> Checked {
    let mut window = window()?;
    let call = push(&mut window, turn(&["c1"]))?;
    let mut unit = vec![call];
    for progress in ["still running", "80 %"] {
        unit.push(push(&mut window, result(long(progress)).interim("c1"))?);
        assert_eq!(open(&window), [(call, "c1".to_owned())]);
        for part in &unit {
            let pending = evicted(&mut window, *part);
            assert!(
                matches!(pending, Err(EvictError::Selection(SelectionError::Pending { turn, .. })) if turn == call)
            );
        }
        let Refused::NothingToPrune { held, .. } = refused(&mut window)? else { return Err("a candidate".into()) };
        assert_eq!(held.calls, window.open_calls());
    }
    // An error is a final result as well.
    unit.push(push(&mut window, result(long("killed")).answers("c1").failed())?);
    assert_eq!(open(&window), []);
    assert_eq!(states(&window), [ResultState::Interim, ResultState::Interim, ResultState::Final]);
    let after = push(&mut window, result("more").interim("c1"));
    assert!(matches!(after, Err(PushError::Unasked { .. })), "the call is closed");
    assert_eq!(evicted(&mut window, unit[1])?, unit);
    Ok(())
}

// Calls whose results are late, or never come.

/// B052: a call that waited for a person was summarized away, and the answer had nothing to attach to.
#[test]
fn a_call_that_waits_stays_and_its_answer_attaches_after_a_prune() -> Checked {
    let limits = Limits::of(4_000).trigger(2_000).index(400).rationale(50).margin(50);
    let mut window = opened(memory(), limits)?;
    let call = push(&mut window, turn(&["confirm"]))?;
    let first = push(&mut window, result(long("asked the user")).interim("confirm"))?;
    let turns = (0..10).map(|n| push(&mut window, long(&n.to_string()))).collect::<Result<Vec<_>, _>>()?;
    let FellBack::Freed(report) = fall_back(&mut window)? else { return Err("nothing left".into()) };
    assert!(report.tombstones().iter().all(|tombstone| turns.contains(&tombstone.span())), "what is pending stays");
    let answer = push(&mut window, NewSpan::human(long("yes")).answers("confirm"))?;
    assert_eq!(evicted(&mut window, answer)?, [call, first, answer]);
    Ok(())
}

/// B054: one call whose answer never came kept everything after it in the window for ever, and nobody was told.
#[test]
fn a_call_that_is_never_answered_blocks_nothing_and_every_refusal_names_it() -> Checked {
    let store = memory();
    let limits = Limits::of(4_000).trigger(1_000).index(100).rationale(50).margin(50);
    let mut window = opened(store.clone(), limits)?;
    window.lanes().rules.push("rule")?;
    let call = push(&mut window, NewSpan::model("c".repeat(1_200)).calls(["c1"]))?;
    let work = (0..8).map(|n| push(&mut window, long(&n.to_string()))).collect::<Result<Vec<_>, _>>()?;
    let FellBack::Freed(report) = fall_back(&mut window)? else { return Err("it blocks".into()) };
    assert_eq!(report.tombstones().iter().map(|tombstone| tombstone.span()).collect::<Vec<_>>(), work);
    let age = work.iter().filter_map(|span| window.lanes().work.tokens(*span)).map(|count| u64::from(count.tokens()));
    let age = age.sum();

    // Whoever asks again is told, each time.
    let waits = window.open_calls();
    assert_eq!(waits.iter().map(|open| (open.span, &*open.call, open.age)).collect::<Vec<_>>(), [(call, "c1", age)]);
    for attempt in 0..5 {
        let Refused::NothingToPrune { held, .. } = refused(&mut window)? else { return Err("admitted".into()) };
        assert_eq!((held.pending, &held.calls), (1_200, &waits));
        assert!(held.to_string().ends_with(&format!("pending: `c1` of {call}, {age} tokens ago")), "{held}");
        let held = match fall_back(&mut window)? {
            FellBack::Unchanged { held } if attempt == 0 => held,
            FellBack::NoProgress { held, .. } if attempt > 0 => held,
            other => return Err(format!("{other:?}").into()),
        };
        assert_eq!((held.pending, &held.calls), (1_200, &waits));
    }
    let pending = evicted(&mut window, call).err().ok_or("it left")?.to_string();
    assert!(pending.contains("`c1`") && pending.contains(&format!("{age} tokens ago")), "{pending}");

    // Given up, it leaves.
    let lost = window.abandon(call, "c1", Abandonment::because("the worker\ndied")?).wait()?;
    assert_eq!((open(&window), states(&window)), (Vec::new(), vec![ResultState::Lost]));
    let last = window.render().pop().ok_or("nothing is shown")?;
    let said = "[no result: the worker died; whether it took effect is unknown]";
    assert_eq!((last.role(), last.content().as_text()), (Role::Tool, Some(said)));
    let FellBack::Freed(report) = fall_back(&mut window)? else { return Err("it stays".into()) };
    assert_eq!(report.tombstones().iter().map(|tombstone| tombstone.span()).collect::<Vec<_>>(), [call, lost]);
    assert_eq!(window.recall(lost).wait()?.content().as_text(), Some(said));

    // And the log says why.
    let history = History::read(&*store, &EpisodeId::new("e"))?;
    let mut happenings = history.entries().iter().flat_map(|entry| &entry.happenings);
    let told = happenings.find_map(|one| match one {
        Happening::Abandoned { turn, call, result, reason } => Some((*turn, &**call, result.span, &**reason)),
        _ => None,
    });
    assert_eq!(told, Some((call, "c1", lost, "the worker\ndied")));
    assert!(history.span(lost).is_some());
    same_after_resume(&*store, &mut window, limits)
}

/// B054: what cannot fit because of a pending exchange says which.
#[test]
fn a_window_that_cannot_fit_names_what_is_pending() -> Checked {
    let mut window = opened(memory(), Limits::of(2_000).trigger(1_000).index(100).rationale(50).margin(50))?;
    for call in ["a", "b"] {
        push(&mut window, NewSpan::model("c".repeat(1_200)).calls([call]))?;
    }
    let refused = fall_back(&mut window).err().ok_or("it fits")?;
    let Some(FallBackError::Unfittable { held, .. }) = refused.downcast_ref() else { return Err(refused) };
    assert_eq!(held.calls, window.open_calls());
    assert!(refused.to_string().contains("`a` of s1, 1200 tokens ago, `b` of s2, 0 tokens ago"), "{refused}");
    Ok(())
}

#[test]
fn only_an_open_call_is_abandoned_and_a_failed_commit_leaves_it_open() -> Checked {
    let store = Arc::<Faulty>::default();
    let mut window = opened(store.clone(), wide())?;
    let call = push(&mut window, turn(&["c1", "c2"]))?;
    push(&mut window, result("done").answers("c1"))?;
    let why = || Abandonment::because("gone");
    assert!(Abandonment::because(" ").is_err());
    for (span, id) in [(call, "c1"), (call, "c3"), (push(&mut window, "text")?, "c2")] {
        let refused = window.abandon(span, id, why()?).wait();
        assert!(matches!(refused, Err(AbandonError::NotOpen { turn, call }) if turn == span && *call == *id));
    }
    let unborn = SpanId::parse("s99").ok_or("an id")?;
    let refused = window.abandon(unborn, "c2", why()?).wait();
    assert!(matches!(refused, Err(AbandonError::Selection(SelectionError::Unknown { .. }))));

    // Two commits and the reads of what they brought: whichever fails, nothing is half done.
    for nth in 1..7 {
        store.arm(nth, Fault::Fails);
        assert!(window.abandon(call, "c2", why()?).wait().is_err());
        assert_eq!(open(&window), [(call, "c2".to_owned())], "at call {nth}");
    }
    window.abandon(call, "c2", why()?).wait()?;
    let again = window.abandon(call, "c2", why()?).wait();
    assert!(matches!(again, Err(AbandonError::NotOpen { .. })));
    assert_eq!(window.uncommitted().spans, 0, "all of it is in the store");
    same_after_resume(&*store, &mut window, wide())
}

/// An abandonment whose answer was lost is there after all, and what was pushed meanwhile moves behind it.
#[test]
fn an_abandonment_without_an_answer_is_recovered() -> Checked {
    let store = Arc::<Faulty>::default();
    let mut window = opened(store.clone(), wide())?;
    let call = push(&mut window, turn(&["c1"]))?;
    let sealed = push(&mut window, NewSpan::model("signed").sealed())?;
    // The texts and their read-back, then the record.
    store.arm(5, Fault::Unacknowledged);
    assert!(window.abandon(call, "c1", Abandonment::because("gone")?).wait().is_err());
    let late = push(&mut window, result("late").answers("c1"))?;
    let [behind, last] = ["signed later", "signed last"].map(|text| push(&mut window, NewSpan::model(text).sealed()));
    let (behind, last) = (behind?, last?);
    assert_eq!(open(&window), [], "as far as the window knows");
    let Recovered::Written { moved } = window.recover()? else { return Err("it was not written".into()) };
    assert_eq!(moved.iter().map(|(old, _)| *old).collect::<Vec<_>>(), [late, behind, last]);
    assert_eq!(states(&window), [ResultState::Lost, ResultState::Late]);
    assert_eq!(seals(&window), (vec![sealed], vec![moved[1].1, moved[2].1]), "the notice came before what was signed");
    same_after_resume(&*store, &mut window, wide())
}

/// What comes after all is not lost.
#[test]
fn a_late_result_is_one_more_of_its_exchange() -> Checked {
    for evict_first in [false, true] {
        let store = memory();
        let mut window = opened(store.clone(), wide())?;
        let call = push(&mut window, turn(&["c1"]))?;
        let lost = window.abandon(call, "c1", Abandonment::because("gone")?).wait()?;
        if evict_first {
            assert_eq!(evicted(&mut window, lost)?, [call, lost]);
        }
        let running = push(&mut window, result(long("running after all")).interim("c1"))?;
        let late = push(&mut window, result(long("done after all")).answers("c1"))?;
        let states: Vec<_> = states(&window).into_iter().skip(usize::from(!evict_first)).collect();
        assert_eq!((states, open(&window)), (vec![ResultState::Late, ResultState::Late], Vec::new()));
        let more = push(&mut window, result("and once more").answers("c1"));
        assert!(matches!(more, Err(PushError::Unasked { .. })));
        let rest = if evict_first { vec![running, late] } else { vec![call, lost, running, late] };
        assert_eq!(evicted(&mut window, late)?, rest);
        assert_eq!(window.lanes().work.restore(late).wait()?, [call, lost, running, late], "it comes back as one");
        same_after_resume(&*store, &mut window, wide())?;
        // An open call of the same id is nearer.
        let next = push(&mut window, turn(&["c1"]))?;
        let answer = push(&mut window, result(long("of the next")).answers("c1"))?;
        assert_eq!(evicted(&mut window, answer)?, [next, answer]);
    }
    Ok(())
}

/// A result without its call is refused, unless an import says that it is one.
#[test]
fn an_orphan_is_a_span_of_its_own() -> Checked {
    let store = memory();
    let mut window = opened(store.clone(), wide())?;
    assert!(matches!(push(&mut window, result("x").answers("c1")), Err(PushError::Unasked { .. })));
    let orphan = push(&mut window, result(long("whose?")).orphan("c1"))?;
    let call = push(&mut window, turn(&["c1"]))?;
    let answer = push(&mut window, result(long("mine")).answers("c1"))?;
    assert_eq!(window.orphans(), [orphan]);
    assert_eq!(states(&window), [ResultState::Orphan, ResultState::Final]);
    assert_eq!(shown(&window), [orphan, call, answer].map(Shown::Span), "it is shown where it stands");
    assert_eq!(evicted(&mut window, orphan)?, [orphan]);
    same_after_resume(&*store, &mut window, wide())?;
    assert_eq!(window.orphans(), [orphan], "also when it left");
    Ok(())
}

// By position, and the nearest call.

/// Providers use ids again, in the next turn and in the same.
#[test]
fn a_result_belongs_to_the_nearest_call_without_one() -> Checked {
    let mut window = window()?;
    let one = push(&mut window, turn(&["a"]))?;
    let two = push(&mut window, turn(&["a", "a"]))?;
    assert_eq!(open(&window), [(one, "a".to_owned()), (two, "a".to_owned()), (two, "a".to_owned())]);
    let of_two = [long("x"), long("y")].map(|text| push(&mut window, result(text).answers("a")));
    let [first, second] = of_two;
    assert_eq!(open(&window), [(one, "a".to_owned())]);
    let of_one = push(&mut window, result(long("z")).answers("a"))?;
    assert_eq!(evicted(&mut window, of_one)?, [one, of_one]);
    assert_eq!(evicted(&mut window, two)?, [two, first?, second?]);
    Ok(())
}

/// B051: seven parallel results, each under the role of the user, were counted as seven turns, and a cut fell among them. They
/// may come in any order.
/// R11, R16: neighbours in an exchange share a pointer, and parts in two places have two: it is offered where it takes more.
#[test]
fn an_exchange_is_offered_where_it_outweighs_its_pointers() -> Checked {
    let mut window = window()?;
    let large = push(&mut window, "w".repeat(5_000))?;
    let part = |tokens: usize| "p".repeat(tokens);
    let together = push(&mut window, NewSpan::model(part(20)).calls(["a", "b"]))?;
    push(&mut window, result(part(70)).answers("a"))?;
    push(&mut window, result(part(70)).answers("b"))?;
    push(&mut window, NewSpan::model(part(20)).calls(["c"]))?;
    window.lanes().rules.push("between")?;
    push(&mut window, result(part(140)).answers("c"))?;
    let pass = window.lanes().externalize().wait()?.admit().map_err(|refusal| refusal.to_string())?;
    assert_eq!(pass.index().offers().iter().map(Offer::span).collect::<Vec<_>>(), [large, together]);
    Ok(())
}

#[test]
fn seven_parallel_results_are_one_exchange_whatever_their_role_and_order() -> Checked {
    let ids: Vec<_> = (0..7).map(|n| format!("c{n}")).collect();
    for shift in 0..7 {
        let mut window = window()?;
        let asked = window.lanes().rules.push(NewSpan::human("all seven, please"))?;
        let mut unit = vec![push(&mut window, NewSpan::model(long("seven")).calls(ids.iter().map(String::as_str)))?];
        for n in 0..7 {
            let id = ids[(n * 3 + shift) % 7].as_str();
            unit.push(push(&mut window, result(long(id)).role(Role::User).answers(id))?);
        }
        assert_eq!(open(&window), []);
        assert_eq!(evicted(&mut window, unit[shift])?, unit);
        assert_eq!(shown(&window), [Shown::Span(asked), Shown::Pointer(unit[0], unit[7])]);
    }
    Ok(())
}

/// B049: the limit was reached after the first of two parallel results, and the second stayed without its call.
#[test]
fn parallel_results_are_on_one_side_of_a_cut() -> Checked {
    let limits = Limits::of(8_000).trigger(5_000).index(300).rationale(50).margin(50);
    let mut window = opened(memory(), limits)?;
    let asked = window.lanes().rules.push(NewSpan::human("q"))?;
    let call = push(&mut window, turn(&["c1", "c2"]))?;
    let first = push(&mut window, result("x".repeat(5_000)).answers("c1"))?;
    // At the limit, and the second result is still out.
    assert!(matches!(fall_back(&mut window)?, FellBack::Unchanged { held } if held.calls.len() == 1));
    let second = push(&mut window, result(long("y")).answers("c2"))?;
    let rest = [push(&mut window, NewSpan::model("a"))?, push(&mut window, NewSpan::human("u"))?];
    let FellBack::Freed(report) = fall_back(&mut window)? else { return Err("nothing left".into()) };
    let left: Vec<_> = report.tombstones().iter().map(|tombstone| tombstone.span()).collect();
    assert_eq!(left, [call, first, second]);
    let [one, two] = rest.map(Shown::Span);
    assert_eq!(shown(&window), [Shown::Span(asked), Shown::Pointer(call, second), one, two]);
    Ok(())
}

/// B036: a second cut, at another parity, fell into a pair. Whichever span is chosen, of however many, no pair is split; B059: and
/// what a pointer says is counted of what it covers.
#[test]
fn no_selection_of_any_length_splits_a_pair() -> Checked {
    for length in 0..40_usize {
        let mut window = window()?;
        push(&mut window, "a first word that leaves with nothing else")?;
        let mut all = Vec::new();
        for n in 0..length {
            if n % 2 == 0 {
                all.push(push(&mut window, turn(&["call_0"]))?);
            } else {
                all.push(push(&mut window, result(format!("{n}")).answers("call_0"))?);
            }
        }
        let settled = length / 2 * 2;
        for at in [length / 2, length / 3].into_iter().filter(|at| *at < settled) {
            let pair = [all[at / 2 * 2], all[at / 2 * 2 + 1]];
            match evicted(&mut window, all[at]) {
                Ok(left) => assert_eq!(left, pair),
                Err(EvictError::Selection(SelectionError::AlreadyEvicted { span })) => assert!(pair.contains(&span)),
                Err(error) => return Err(error.into()),
            }
            let half = window.lanes().externalize().wait()?;
            let half = half.work.summarize(all[settled - 1], summary("x")?, &half.recap).wait().err();
            let whole = matches!(
                half,
                Some(SummarizeError::Selection(
                    SelectionError::HalfAnExchange { .. } | SelectionError::AlreadyEvicted { .. }
                ))
            );
            assert!(whole, "{length}");
        }
        for message in window.render() {
            if let Shown::Pointer(first, last) = message.shown() {
                let (text, spans) =
                    (message.content().as_text().unwrap_or_default(), last.number() - first.number() + 1);
                assert!(text.contains(&format!("{spans} spans")), "{text}");
            }
        }
    }
    Ok(())
}

/// B057: one message of a person and then only exchanges: no cut qualified, and nothing was ever trimmed.
#[test]
fn of_a_history_of_tools_alone_the_oldest_exchanges_leave() -> Checked {
    let limits = Limits::of(4_000).trigger(2_000).index(300).rationale(50).margin(50);
    let mut window = opened(memory(), limits)?;
    let asked = window.lanes().rules.push(NewSpan::human("u1"))?;
    let mut all = Vec::new();
    for n in 0..10 {
        let call = push(&mut window, turn(&["call_0"]))?;
        all.push([call, push(&mut window, result(long(&n.to_string())).answers("call_0"))?]);
    }
    let FellBack::Freed(report) = fall_back(&mut window)? else { return Err("nothing left".into()) };
    let left: Vec<_> = report.tombstones().iter().map(|tombstone| tombstone.span()).collect();
    assert_eq!(left, all[..left.len() / 2].concat(), "the oldest, whole");
    assert_eq!(shown(&window)[0], Shown::Span(asked));
    assert!(window.utilization() < 2_000 && left.len() < 20);
    Ok(())
}

/// B058: the input of the summarizer was cut inside a pair, and each retry was cut at the same place.
#[test]
fn what_is_summarized_is_whole_exchanges_wherever_it_is_cut() -> Checked {
    let mut window = window()?;
    let mut all = Vec::new();
    for n in 0..9 {
        all.push(push(&mut window, turn(&["call_0"]))?);
        all.push(push(&mut window, result(long(&n.to_string())).answers("call_0"))?);
    }
    for cut in 1..=all.len() {
        let lanes = window.lanes().externalize().wait()?;
        let half = || lanes.work.summarize(&all[..cut], summary("x").ok()?, &lanes.recap).wait().err();
        if cut % 2 == 1 {
            let told = [(); 3].map(|()| half().map(|error| error.to_string()));
            let expected = SelectionError::HalfAnExchange { span: all[cut - 1], left: all[cut] }.to_string();
            assert_eq!(told, [(); 3].map(|()| Some(expected.clone())), "the same each time, and nothing happened");
        } else if cut == all.len() {
            lanes.work.summarize(all.clone(), summary("nine reads")?, &lanes.recap).wait()?;
        }
    }
    assert!(matches!(shown(&window)[..], [Shown::Summary(_)]));
    Ok(())
}

/// B055: a message of a person with a result in it was kept whole while its call was not. A span is one thing: the words and the
/// result are two, and only the result leaves with its call.
#[test]
fn the_words_of_a_person_beside_a_result_are_a_span_of_their_own() -> Checked {
    let mut window = window()?;
    let call = push(&mut window, turn(&["c1"]))?;
    let words = push(&mut window, NewSpan::human("and look at the tests"))?;
    let answer = push(&mut window, result(long("r1")).role(Role::User).answers("c1"))?;
    assert_eq!(evicted(&mut window, call)?, [call, answer]);
    assert_eq!(shown(&window)[1], Shown::Span(words));
    Ok(())
}

// Turns in several spans, and what is sealed.

/// Signed reasoning, the text and a call, then the call's result.
fn signed<S>(window: &mut Windowed<S>, label: &str) -> Result<[SpanId; 4], PushError> {
    let said = |text: &str| NewSpan::model(format!("{label} {}", long(text))).turn(label);
    Ok([
        push(window, said("signed").sealed())?,
        push(window, said("text"))?,
        push(window, said("call").calls(["call_0"]))?,
        push(window, result(format!("{label} {}", long("result"))).answers("call_0"))?,
    ])
}

#[test]
fn the_spans_of_a_turn_are_one_unit_with_its_results() -> Checked {
    let store = memory();
    let mut window = opened(store.clone(), wide())?;
    let part = |label: &str| NewSpan::model(long(label)).turn(label);
    let alone = push(&mut window, part("m1"))?;
    let next = [push(&mut window, part("m2"))?, push(&mut window, part("m2").calls(["c"]))?];
    let answer = push(&mut window, result(long("r")).answers("c"))?;
    // Not one directly after the other: a label that is used again.
    let again = push(&mut window, part("m2"))?;
    let other = push(&mut window, part("m1"))?;
    same_after_resume(&*store, &mut window, wide())?;
    let turns = History::read(&*store, &EpisodeId::new("e"))?;
    assert_eq!(turns.turns(), [alone, next[0], again, other], "a turn is counted once");
    for unit in [vec![alone], vec![next[0], next[1], answer], vec![again], vec![other]] {
        assert_eq!(evicted(&mut window, unit[0])?, unit);
    }
    for wrong in [result("r").orphan("c").turn("m3"), NewSpan::human("mine").sealed(), result("r").sealed()] {
        assert!(matches!(push(&mut window, wrong), Err(PushError::NotSaid { lane: "work" })));
    }
    Ok(())
}

/// B100: one block of a signed message was deleted, and the provider refused the rest for good.
#[test]
fn no_part_of_a_sealed_turn_goes_without_the_others() -> Checked {
    let mut window = window()?;
    let unit = signed(&mut window, "m1")?;
    let without = |span: SpanId| unit.iter().copied().filter(|other| *other != span).collect::<Vec<_>>();
    for span in unit {
        let named = |error: &SelectionError| matches!(error, SelectionError::Sealed { span: of, others } if *of == span && *others == without(span));
        let discarded = window.lanes().work.discard(span, mutation()?).wait().err();
        assert!(matches!(&discarded, Some(DiscardError::Selection(error)) if named(error)), "{discarded:?}");
        let lanes = window.lanes().externalize().wait()?;
        let summarized = lanes.work.summarize(span, summary("x")?, &lanes.recap).wait().err();
        assert!(matches!(&summarized, Some(SummarizeError::Selection(error)) if named(error)), "{summarized:?}");
        let redacted = lanes.work.redact(span, mutation()?).wait().err();
        assert!(matches!(&redacted, Some(RedactError::Selection(error)) if named(error)), "{redacted:?}");
        drop(lanes);
        assert_eq!(evicted(&mut window, span)?, unit, "it leaves whole");
        let redacted = window.lanes().work.redact(span, mutation()?).wait().err();
        assert!(matches!(&redacted, Some(RedactError::Selection(error)) if named(error)), "{redacted:?}");
        assert_eq!(window.lanes().work.restore(span).wait()?, unit);
    }
    let lanes = window.lanes().externalize().wait()?;
    let by = lanes.work.summarize(unit, summary("all of it")?, &lanes.recap).wait()?;
    lanes.recap.reground(by).wait()?;
    assert_eq!(lanes.work.redact(unit, mutation()?).wait()?.spans(), unit);
    Ok(())
}

/// B102: signatures bound to a prefix were sent for the rest of the session after a compaction had changed the prefix.
#[test]
fn a_seal_holds_until_something_before_it_changes() -> Checked {
    let store = memory();
    let mut window = opened(store.clone(), wide())?;
    let mut old = vec![push(&mut window, long("first"))?];
    let mut sealed = Vec::new();
    for turn in ["a", "b", "c"] {
        sealed.push(signed(&mut window, turn)?[0]);
        old.push(push(&mut window, long(turn))?);
    }
    assert_eq!(seals(&window), (sealed.clone(), vec![]));
    // What leaves breaks what is behind it.
    evicted(&mut window, old[2])?;
    assert_eq!(seals(&window), (sealed[..2].to_vec(), sealed[2..].to_vec()));
    same_after_resume(&*store, &mut window, wide())?;
    // What comes back heals nothing, and breaks what was signed over the pointer.
    let over = signed(&mut window, "d")?[0];
    assert_eq!(seals(&window), ([sealed[0], sealed[1], over].to_vec(), vec![sealed[2]]));
    window.lanes().work.restore(old[2]).wait()?;
    assert_eq!(seals(&window), (sealed[..2].to_vec(), vec![sealed[2], over]), "also before any commit has it");
    same_after_resume(&*store, &mut window, wide())?;
    // A summary at its first source.
    let lanes = window.lanes().externalize().wait()?;
    let by = lanes.work.summarize([old[1], old[3]], summary("two")?, &lanes.recap).wait()?;
    drop(lanes);
    assert_eq!(seals(&window), (vec![sealed[0]], vec![sealed[1], sealed[2], over]));
    let last = signed(&mut window, "e")?[0];
    let late = push(&mut window, "at the end")?;
    evicted(&mut window, late)?;
    assert_eq!(seals(&window).0, [sealed[0], last], "what is behind changes nothing");
    // The summary, whose id is behind all but the last, stands before them.
    window.lanes().externalize().wait()?.recap.evict(by).wait()?;
    assert_eq!(seals(&window).0, [sealed[0]]);
    same_after_resume(&*store, &mut window, wide())?;
    // Its own way out and back.
    evicted(&mut window, sealed[0])?;
    window.lanes().work.restore(sealed[0]).wait()?;
    assert_eq!(seals(&window).0, []);
    let newest = signed(&mut window, "f")?[0];
    window.lanes().work.redact(old[0], mutation()?).wait()?;
    assert!(seals(&window).1.contains(&newest));
    same_after_resume(&*store, &mut window, wide())
}

/// A restore that did happen changed what stood before a turn that was signed meanwhile.
#[test]
fn a_seal_does_not_outlive_a_commit_whose_answer_was_lost() -> Checked {
    for written in [Fault::Unacknowledged, Fault::Fails] {
        let store = Arc::<Faulty>::default();
        let mut window = opened(store.clone(), wide())?;
        let [before, old] = [push(&mut window, long("before"))?, push(&mut window, long("old"))?];
        let first = push(&mut window, NewSpan::model(long("first")).sealed())?;
        drop(window.lanes().externalize().wait()?.work.evict(old).wait()?);
        let second = push(&mut window, NewSpan::model(long("second")).sealed())?;
        // The text is read, then the record is written.
        store.arm(2, written);
        assert!(window.lanes().work.restore(old).wait().is_err());
        assert_eq!(seals(&window), (vec![second], vec![first]));
        let _ = window.recover()?;
        let stays = if written == Fault::Fails { vec![second] } else { vec![] };
        assert_eq!(seals(&window).0, stays);
        assert!(shown(&window).contains(&Shown::Span(before)));
        same_after_resume(&*store, &mut window, wide())?;
    }
    Ok(())
}

// Observations.

#[test]
fn a_newer_observation_supersedes_an_older_one_of_the_same_lane() -> Checked {
    let store = memory();
    let mut window = opened(store.clone(), wide())?;
    let read = |text: &str| result(long(text)).reads("the schema of users");
    let one = push(&mut window, read("one"))?;
    let elsewhere = window.lanes().schema.push(read("another lane"))?;
    let two = push(&mut window, read("two"))?;
    let failed = push(&mut window, read("no such table").failed())?;
    let three = push(&mut window, read("three"))?;
    let by = |window: &Windowed, spans: [SpanId; 5]| spans.map(|span| window.superseded_by(span));
    assert_eq!(by(&window, [one, elsewhere, two, failed, three]), [Some(two), None, Some(three), None, None]);
    same_after_resume(&*store, &mut window, wide())?;
    // What is superseded leaves first.
    let last = push(&mut window, long("last"))?;
    assert!(window.contradictions().is_empty(), "they are all in the window");
    drop(window.lanes().externalize().wait()?);
    let mut window = resumed(store, Limits::of(2_000).trigger(1_050).index(100).rationale(50).margin(50))?;
    let fell = match window.lanes().externalize().wait()?.admit() {
        Ok(pass) => pass.fall_back(SupersededReads).wait()?,
        Err(refusal) => refusal.fall_back(SupersededReads).wait()?,
    };
    let FellBack::Freed(report) = fell else { return Err("nothing left".into()) };
    let left: Vec<_> = report.tombstones().iter().map(|tombstone| tombstone.span()).collect();
    assert_eq!(left, [one, two]);
    assert!(window.lanes().work.resident().contains(&last));
    Ok(())
}

fn contradictions<S>(window: &Windowed<S>) -> Vec<(&'static str, String, SpanId, SpanId)> {
    let all = window.contradictions().into_iter();
    all.map(|pair| (pair.lane, pair.subject.to_string(), pair.evicted, pair.observed)).collect()
}

#[test]
fn what_differs_from_an_observation_that_left_is_told_until_that_comes_back_once() -> Checked {
    let store = memory();
    let mut window = opened(store.clone(), wide())?;
    let read = |text: &str| result(long(text)).reads("users");
    let old = push(&mut window, read("id INT"))?;
    evicted(&mut window, old)?;
    let same = push(&mut window, read("id INT"))?;
    assert_eq!(contradictions(&window), [], "it says the same, whether the store has it or not");
    drop(window.lanes().externalize().wait()?);
    assert_eq!(contradictions(&window), []);
    evicted(&mut window, same)?;
    let new = push(&mut window, read("id BIGINT"))?;
    let told = [("work", "users".to_owned(), same, new)];
    assert_eq!(contradictions(&window), told);
    same_after_resume(&*store, &mut window, wide())?;
    // Also when the newer one left.
    evicted(&mut window, new)?;
    assert_eq!(contradictions(&window), told);
    window.lanes().work.restore(same).wait()?;
    assert_eq!(contradictions(&window), []);
    evicted(&mut window, same)?;
    assert_eq!(contradictions(&window), [], "it came back once");
    same_after_resume(&*store, &mut window, wide())?;

    // Under a summary, until that is re-grounded, and while no commit has the newer one.
    let lanes = window.lanes();
    let subject = |text: &str| result(long(text)).reads("port");
    let port = lanes.work.push(subject("8080"))?;
    let lanes = lanes.externalize().wait()?;
    let by = lanes.work.summarize(port, summary("a port")?, &lanes.recap).wait()?;
    drop(lanes);
    let now = push(&mut window, subject("9090"))?;
    assert_eq!(contradictions(&window), [("work", "port".to_owned(), port, now)]);
    window.lanes().recap.reground(by).wait()?;
    assert_eq!(contradictions(&window), []);
    same_after_resume(&*store, &mut window, wide())?;

    // What was removed for good is contradicted by nothing.
    evicted(&mut window, now)?;
    let third = push(&mut window, subject("7070"))?;
    assert_eq!(contradictions(&window), [("work", "port".to_owned(), now, third)]);
    window.lanes().work.redact(now, mutation()?).wait()?;
    assert_eq!(contradictions(&window), []);
    same_after_resume(&*store, &mut window, wide())
}

/// Two recalls of the same span differ in what the library says around it, not in what was observed.
#[test]
fn a_recall_contradicts_no_recall() -> Checked {
    let mut window = window()?;
    let old = push(&mut window, result("one\ntwo\nthree\n".repeat(40)))?;
    evicted(&mut window, old)?;
    for (round, limit) in [400, 60].into_iter().enumerate() {
        let id = format!("t{round}");
        let response = serde_json::json!({ "choices": [{ "finish_reason": "tool_calls", "message": { "tool_calls": [{
            "id": id, "type": "function", "function": { "name": "recall_span",
            "arguments": "{\"span\":\"s1\",\"from_line\":1,\"to_line\":9,\"search\":null}" } }] } }] });
        push(&mut window, turn(&[&id]))?;
        for call in RecallCall::read(OpenAiChat, &response)? {
            let reply = window.answer_recall(&call, limit).wait()?;
            let reply = push(&mut window, reply)?;
            evicted(&mut window, reply)?;
        }
    }
    assert!(window.superseded_by(SpanId::parse("s3").ok_or("an id")?).is_some(), "they are of the same part");
    assert_eq!(contradictions(&window), []);
    Ok(())
}

#[derive(ContextState)]
struct TwoLanes {
    #[evictable(otherwise)]
    left: Spans,
    #[evictable]
    right: Spans,
}

#[derive(ContextState)]
struct OneLane {
    #[evictable(otherwise)]
    both: Spans,
}

/// Lanes that became one have one order of what they observed; a pointer that names its lane under another name is another text.
#[test]
fn lanes_that_became_one_observe_as_one() -> Checked {
    let store = memory();
    let mut window = Window::<TwoLanes, _>::open_with(store.clone(), Episode::new("e", "p"), OneByteAToken)?;
    let read = |text: &str| result(long(text)).reads("users");
    let lanes = window.lanes();
    let (one, two, three) = (lanes.left.push(read("1"))?, lanes.right.push(read("2"))?, lanes.left.push(read("3"))?);
    lanes.left.push(NewSpan::model(long("signed")).sealed())?;
    assert_eq!([one, two, three].map(|span| window.superseded_by(span)), [Some(three), None, None]);
    window.lanes().externalize().wait()?.right.evict(two).wait()?;
    let last = window.lanes().left.push(NewSpan::model(long("signed over the pointer")).sealed())?;
    drop(window.lanes().externalize().wait()?);

    let migrated = Migration::because("one is enough")?.rename("left", "both").rename("right", "both");
    let episode = Episode::new("e", "p").migrate(migrated);
    let mut window = Window::<OneLane, _>::resume_with(store.clone(), episode, OneByteAToken)?;
    let look = |window: &Window<OneLane, Arc<MemoryStore>>| {
        let seal =
            window.render().iter().filter(|message| message.shown() == Shown::Span(last)).find_map(|m| m.seal_intact());
        let unseen: Vec<_> = window.contradictions().into_iter().map(|pair| (pair.evicted, pair.observed)).collect();
        ([one, two, three].map(|span| window.superseded_by(span)), unseen, seal)
    };
    // Nothing took the place of the pointer while its lane was another one.
    assert_eq!(look(&window), ([Some(two), Some(three), None], vec![(two, three)], Some(false)));
    let four = window.lanes().both.push(read("4"))?;
    window.lanes().externalize().wait()?.both.evict(three).wait()?;
    let five = window.lanes().both.push(read("5"))?;
    assert_eq!((window.superseded_by(three), window.superseded_by(four)), (Some(four), Some(five)));
    drop(window.lanes().externalize().wait()?);
    let before = look(&window);
    let again = Window::<OneLane, _>::resume_with(store, Episode::new("e", "p"), OneByteAToken)?;
    assert_eq!(look(&again), before);
    Ok(())
}

// Any of it, in any order.

/// One move; numbers choose among what there is.
#[derive(Clone, Debug)]
enum Move {
    /// A turn with these calls, in a turn of this label, sealed or not.
    Turn(Vec<u8>, Option<u8>, bool),
    Answer(u8, bool),
    Orphan(u8),
    Read(u8, u8, bool),
    Abandon(u8),
    Externalize,
    Evict(u8),
    Restore(u8),
    Summarize(u8),
    Reground(u8),
    Redact(u8),
    Discard(u8),
    FallBack,
    /// The store is asked what became of a commit without an answer.
    Recover,
    /// Another process goes on.
    Resume,
}

/// A store of which one commit gets no answer, whether it happened or not.
#[derive(Default)]
struct Deaf {
    inner: MemoryStore,
    /// Commits left until then; 0 is off.
    left: AtomicU64,
    happens: AtomicBool,
}

impl Store for Deaf {
    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        if self.left.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)) != Ok(1) {
            return self.inner.commit(batch);
        }
        if self.happens.load(SeqCst) {
            self.inner.commit(batch)?;
        }
        Err(StoreError::Unacknowledged)
    }

    fn get(&self, digest: &Digest) -> Result<Vec<u8>, StoreError> {
        self.inner.get(digest)
    }

    fn read(&self, episode: &EpisodeId, from: u64, most: u64) -> Result<Vec<Vec<u8>>, StoreError> {
        Store::read(&self.inner, episode, from, most)
    }

    fn length(&self, episode: &EpisodeId) -> Result<u64, StoreError> {
        Store::length(&self.inner, episode)
    }

    fn holders(&self, signatures: &[Digest]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        Store::holders(&self.inner, signatures)
    }
}

/// A move, and which of its commits gets no answer, having happened or not.
fn programs() -> impl Strategy<Value = Vec<(Move, Option<(u64, bool)>)>> {
    let call = 0..3_u8;
    let one = prop_oneof![
        6 => (prop::collection::vec(call.clone(), 0..3), prop::option::of(0..2_u8), any::<bool>())
            .prop_map(|(calls, label, sealed)| Move::Turn(calls, label, sealed)),
        6 => (call.clone(), prop::bool::weighted(0.7)).prop_map(|(call, last)| Move::Answer(call, last)),
        1 => call.prop_map(Move::Orphan),
        5 => (0..2_u8, 0..2_u8, any::<bool>()).prop_map(|(subject, text, schema)| Move::Read(subject, text, schema)),
        2 => any::<u8>().prop_map(Move::Abandon),
        2 => Just(Move::Externalize),
        5 => any::<u8>().prop_map(Move::Evict),
        4 => any::<u8>().prop_map(Move::Restore),
        2 => any::<u8>().prop_map(Move::Summarize),
        1 => any::<u8>().prop_map(Move::Reground),
        1 => any::<u8>().prop_map(Move::Redact),
        1 => any::<u8>().prop_map(Move::Discard),
        1 => Just(Move::FallBack),
        3 => Just(Move::Recover),
        1 => Just(Move::Resume),
    ];
    prop::collection::vec((one, prop::option::weighted(0.25, (1..4_u64, prop::bool::weighted(0.7)))), 1..60)
}

/// What a refusal adds without a commit of its own.
const UNWRITTEN: &[&str] = &["accounting"];

fn narrow() -> Limits {
    Limits::of(100_000).trigger(1_500).index(400).rationale(50).margin(50)
}

fn at<T: Copy>(list: &[T], number: u8) -> Option<T> {
    list.get(usize::from(number).checked_rem(list.len())?).copied()
}

/// What of a move is refused is not done; what it gives is not asked for here.
fn step(window: &mut Windowed<Deaf>, one: Move, texts: &mut u32) -> Checked {
    *texts += 1;
    let text = |what: &str| format!("{what} {texts} {}", "t".repeat(80));
    let id = |call: u8| format!("call_{call}");
    match one {
        Move::Turn(calls, label, sealed) => {
            let turn = NewSpan::model(text("turn")).calls(calls.into_iter().map(id));
            let turn = label.iter().fold(turn, |turn, label| turn.turn(label.to_string()));
            drop(push(window, if sealed { turn.sealed() } else { turn }));
        }
        Move::Answer(call, last) => {
            let result = result(text("result"));
            drop(push(window, if last { result.answers(id(call)) } else { result.interim(id(call)) }));
        }
        Move::Orphan(call) => drop(push(window, result(text("orphan")).orphan(id(call)))),
        Move::Read(subject, what, schema) => {
            let read = result(format!("{what} {}", "o".repeat(80))).reads(subject.to_string());
            drop(if schema { window.lanes().schema.push(read) } else { push(window, read) });
        }
        Move::Abandon(which) => {
            let open = window.open_calls();
            if let Some(open) = at(&(0..open.len()).collect::<Vec<_>>(), which).map(|at| &open[at]) {
                drop(window.abandon(open.span, open.call.clone(), Abandonment::because("gone")?).wait());
            }
        }
        Move::Externalize => drop(window.lanes().externalize().wait().map(drop)),
        Move::Evict(which) => {
            let lanes = window.lanes().externalize().wait()?;
            let (work, schema) = (lanes.work.resident(), lanes.schema.resident());
            if let Some(span) = at(&[work, schema.clone()].concat(), which) {
                let left = if schema.contains(&span) {
                    lanes.schema.evict(span).wait()
                } else {
                    lanes.work.evict(span).wait()
                };
                drop(left);
            }
        }
        Move::Restore(which) => {
            let lanes = window.lanes();
            if let Some(span) = at(&lanes.work.evicted(), which) {
                drop(lanes.work.restore(span).wait());
            }
            if let Some(span) = at(&lanes.schema.evicted(), which) {
                drop(lanes.schema.restore(span).wait());
            }
        }
        Move::Summarize(which) => {
            let lanes = window.lanes().externalize().wait()?;
            let resident = lanes.work.resident();
            let from = usize::from(which).checked_rem(resident.len()).unwrap_or(0);
            // Until it is whole exchanges, or there are no more spans.
            for to in from..resident.len() {
                if lanes.work.summarize(&resident[from..=to], summary("short")?, &lanes.recap).wait().is_ok() {
                    break;
                }
            }
        }
        Move::Reground(which) => {
            let lanes = window.lanes();
            if let Some(summary) = at(&[lanes.recap.resident(), lanes.recap.evicted()].concat(), which) {
                drop(lanes.recap.reground(summary).wait());
            }
        }
        Move::Redact(which) => {
            let lanes = window.lanes();
            let spans = [lanes.work.resident(), lanes.work.evicted()].concat();
            drop(lanes);
            // What is read again and again would come again as well, and be refused.
            if let Some(span) = at(&spans, which)
                && window.recall(span).wait()?.content().as_text().is_some_and(|text| !text.ends_with('o'))
            {
                drop(window.lanes().work.redact(span, mutation()?).wait());
            }
        }
        Move::Discard(which) => {
            let lanes = window.lanes();
            if let Some(span) = at(&lanes.work.resident(), which) {
                drop(lanes.work.discard(span, mutation()?).wait());
            }
        }
        Move::FallBack => {
            let fell = match window.lanes().externalize().wait()?.admit() {
                Ok(pass) => pass.fall_back(OldestFirst).wait(),
                Err(refusal) => refusal.fall_back(OldestFirst).wait(),
            };
            drop(fell);
        }
        Move::Recover | Move::Resume => {}
    }
    Ok(())
}

/// Which spans leave with each of those that are there, asked of two windows over copies of the same log.
fn units(window: &mut Windowed) -> Vec<String> {
    let mut units = Vec::new();
    for span in window.lanes().work.resident() {
        units.push(format!("{:?}", evicted(window, span)));
        let _ = window.lanes().work.restore(span).wait();
    }
    units
}

/// Compares the window, where nothing is uncommitted, with what its log comes to.
fn compare(store: &Deaf, window: &mut Windowed<Deaf>) -> Checked {
    let before = Seen::of(window).without(UNWRITTEN);
    let mut other = resumed(copied(store, window)?, narrow())?;
    before.difference(&Seen::of(&mut other).without(UNWRITTEN)).map_or(Ok(()), |difference| Err(difference.into()))
}

fn run(program: Vec<(Move, Option<(u64, bool)>)>, seen: &mut [u32; 8]) -> Checked {
    let store = Arc::<Deaf>::default();
    let mut window = opened(store.clone(), narrow())?;
    let (mut texts, mut in_doubt) = (0, false);
    for (one, fault) in program {
        if let Some((nth, happens)) = fault {
            store.happens.store(happens, SeqCst);
            store.left.store(nth, SeqCst);
            in_doubt = true;
        }
        let (resume, recover) = (matches!(one, Move::Resume), matches!(one, Move::Recover));
        let failed = step(&mut window, one, &mut texts).is_err();
        store.left.store(0, SeqCst);
        seen[0] += u32::from(failed);
        if resume && in_doubt {
            // What was not committed is gone with the process.
            window = resumed(store.clone(), narrow())?;
        } else if (recover || !in_doubt)
            && let Recovered::Written { moved } = window.recover()?
        {
            seen[1] += 1;
            seen[2] += u32::from(!moved.is_empty());
        }
        in_doubt &= !resume && !recover;
        let states = states(&window);
        let is = |wanted| u32::from(states.contains(&wanted));
        seen[3] += is(ResultState::Lost);
        seen[4] += is(ResultState::Late);
        seen[5] += u32::from(!window.contradictions().is_empty());
        let (intact, broken) = seals(&window);
        seen[6] += u32::from(!intact.is_empty() && !broken.is_empty());
        if !in_doubt && (resume || window.uncommitted().spans == 0) {
            drop(window.lanes().externalize().wait()?);
            compare(&store, &mut window)?;
            seen[7] += 1;
        }
        if resume {
            window = resumed(store.clone(), narrow())?;
        }
    }
    window.recover()?;
    drop(window.lanes().externalize().wait()?);
    compare(&store, &mut window)?;
    let [one, other] = [copied(&*store, &window)?, copied(&*store, &window)?];
    assert_eq!(units(&mut resumed(one, narrow())?), units(&mut resumed(other, narrow())?));
    Ok(())
}

#[test]
fn whatever_happens_to_exchanges_their_log_says_the_same() {
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: std::env::var("KEEPSPAN_PROGRAMS").ok().and_then(|cases| cases.parse().ok()).unwrap_or(600),
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let seen = std::cell::RefCell::new([0; 8]);
    let ran = runner.run(&programs(), |program| {
        run(program, &mut seen.borrow_mut()).map_err(|error| TestCaseError::fail(error.to_string()))
    });
    if let Err(error) = ran {
        panic!("{error}");
    }
    let seen = seen.into_inner();
    let what = ["failed", "recovered", "moved", "lost", "late", "contradicted", "some seals broken", "compared"];
    for (times, what) in seen.iter().zip(what) {
        assert!(*times >= 8, "{what} is too rare to say anything: {seen:?}");
    }
}
