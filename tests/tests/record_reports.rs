//! Faults that users of other agents reported of what is kept: logs, checkpoints, archives, ids, secrets. A number is that of
//! the public report.

use std::{collections::BTreeSet, sync::Arc};

use keepspan::{
    CommitError, Content, Episode, EpisodeId, Escalation, FellBack, Fidelity, Finish, LargestToolOutput, Limits,
    Memory, Message, ModelAnswer, Mutation, NewSpan, OldestFirst, OneByteAToken, OpenError, Origin, Outcome as Passed,
    PolicyVersion, ProposalError, Question, ResumeError, Role, Shown, SpanId, SummarizeError, SummaryText,
    SupersededReads, Window,
    audit::{self, Happening, History, Standing},
    store::{self, MemoryStore, Store},
    tool::Answer,
};
use keepspan_tests::{Agent, Fault, Faulty, memory};
use proptest::prelude::*;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;
type Shared = Arc<MemoryStore>;
type Windowed<St = Shared> = Window<Agent, St>;

const PLENTY: u64 = 1_000_000;

fn named(name: &str, limits: impl Into<Limits>) -> Episode {
    Episode::new(name, "p").budget(limits)
}

fn open<St: Store>(store: St) -> Result<Windowed<St>, OpenError> {
    Window::open_with(store, named("e", PLENTY), OneByteAToken)
}

fn resume<St: Store>(store: St) -> Result<Windowed<St>, ResumeError> {
    Window::resume_with(store, named("e", PLENTY), OneByteAToken)
}

fn history<St: Store>(store: &St) -> Outcome<History> {
    Ok(History::read(store, &EpisodeId::new("e"))?)
}

fn summary(text: &str) -> Outcome<SummaryText> {
    Ok(ModelAnswer::new(Finish::Stop, text).try_into()?)
}

/// Role, origin, lane, tool, bytes, tokens and what it is.
fn shown(messages: &[Message]) -> Vec<String> {
    messages.iter().map(|message| format!("{message:?}")).collect()
}

fn texts(messages: &[Message]) -> Vec<String> {
    messages.iter().filter_map(|message| message.content().as_text().map(str::to_owned)).collect()
}

fn large(n: u32) -> String {
    format!("{:<400}", format!("m{n}"))
}

fn apply(window: &mut Windowed, answer: &Answer) -> Outcome<Passed> {
    let pass = window.lanes().externalize().wait()?.admit().map_err(|refusal| refusal.into_reason())?;
    let proposal = pass.parse(answer)?;
    Ok(pass.apply(proposal).wait()?)
}

// What a person refused, corrected or never said.

/// B012, B014: a refusal became a mild preference in a summary, and what was refused was done.
#[test]
fn a_refusal_and_a_correction_are_word_for_word_after_two_compactions() -> Outcome {
    let store = memory();
    let limits = Limits::of(24_000).index(600).rationale(400).margin(600);
    let mut window = Windowed::open_with(store.clone(), named("e", limits), OneByteAToken)?;
    let said = ["No. Never recreate the test database.", "The flag is --dry-run, not --check."];
    let lanes = window.lanes();
    let denied = lanes.failed.push(NewSpan::human(said[0]))?;
    let corrected = lanes.schema.push(NewSpan::human(said[1]))?;
    for pass in 0..2 {
        let ids: Vec<_> = (0..9).map(|n| window.lanes().work.push(large(n + pass))).collect::<Result<_, _>>()?;
        let softened = Answer::prune([""; 0]).summarize([denied.to_string()], "they would rather keep the database");
        let refused = apply(&mut window, &softened).err().ok_or("it was paraphrased")?;
        let refused = refused.downcast_ref();
        assert!(matches!(refused, Some(ProposalError::ProtectedSource { span, .. }) if *span == denied), "{refused:?}");
        let sources = ids.iter().map(ToString::to_string);
        let answer = Answer::prune([""; 0]).summarize(sources, "they would rather keep the database");
        assert!(matches!(apply(&mut window, &answer)?, Passed::Pruned(_)));
    }
    let limits = Limits::of(24_000).index(600).rationale(400).margin(600);
    let resumed = Windowed::resume_with(store, named("e", limits), OneByteAToken)?;
    for window in [&window, &resumed] {
        assert_eq!(texts(&window.render())[..2], said);
        for (span, said) in [(denied, said[0]), (corrected, said[1])] {
            assert_eq!(window.recall(span).wait()?.content().as_text(), Some(said));
        }
    }
    Ok(())
}

/// B013: a background notice under the user's role and a summary of it were taken for consent.
#[test]
fn who_said_it_outlives_eviction_resume_and_audit() -> Outcome {
    let store = memory();
    let mut window = open(store.clone())?;
    let lanes = window.lanes();
    let notice = lanes.work.push(NewSpan::notice(format!("push finished {}", large(1))).role(Role::User))?;
    let turn = lanes.work.push(NewSpan::model("shall I push?"))?;
    window.lanes().externalize().wait()?.work.evict(notice).wait()?;
    drop(window);
    let mut window = resume(store.clone())?;
    window.lanes().work.restore(notice).wait()?;
    let history = history(&store)?;
    assert_eq!(history.turns(), [turn]);
    let then = history.at_turn(&store, 1)?.messages;
    for message in [&window.render()[0], &then[0]] {
        assert_eq!(
            (message.shown(), message.role(), message.origin()),
            (Shown::Span(notice), Role::User, Origin::Notice)
        );
    }
    let by = window.lanes().externalize().wait()?;
    let by = by.work.summarize(notice, summary("user approved push")?, &by.recap).wait()?;
    let says = window.render().remove(0);
    assert_eq!((says.shown(), says.role(), says.origin()), (Shown::Summary(by), Role::Assistant, Origin::Model));
    Ok(())
}

/// B021: an outdated summary stood beside the new one, and the model acted by it again and again.
#[test]
fn of_a_range_one_summary_is_shown_and_the_older_is_retired() -> Outcome {
    let store = memory();
    let mut window = open(store.clone())?;
    let ids: Vec<_> = (0..10).map(|n| window.lanes().work.push(large(n))).collect::<Result<_, _>>()?;
    let lanes = window.lanes().externalize().wait()?;
    let old = lanes.work.summarize(&ids[..], summary("the profile is not updated")?, &lanes.recap).wait()?;
    drop(lanes);
    let call = window.lanes().work.push(NewSpan::model("update").calls(["c1"]))?;
    let result = window.lanes().work.push(NewSpan::tool("update_profile", "ok").answers("c1"))?;
    let lanes = window.lanes().externalize().wait()?;
    let again = lanes.work.summarize(ids[0], summary("it is")?, &lanes.recap).wait();
    assert!(matches!(again, Err(SummarizeError::Selection(keepspan::SelectionError::Replaced { .. }))));
    let new =
        lanes.recap.escalate(old, summary("before the update")?, Escalation::because("a larger limit")?).wait()?;
    drop(lanes);
    for window in [window, resume(store.clone())?] {
        let all: Vec<_> = window.render().iter().map(Message::shown).collect();
        assert_eq!(all, [Shown::Summary(new), Shown::Span(call), Shown::Span(result)]);
        assert_eq!(window.derivation(new).ok_or("sources")?.sources(), [old]);
    }
    assert_eq!(history(&store)?.span(old).ok_or("on record")?.1, Standing::Retired);
    Ok(())
}

/// B024: failed calls were dropped as worthless, though a command that fails may have written.
#[test]
fn a_failed_call_is_superseded_by_nothing_and_offered_to_no_model() -> Outcome {
    let limits = Limits::of(24_000).index(600).rationale(400).margin(600);
    let mut window = Windowed::open_with(memory(), named("e", limits), OneByteAToken)?;
    let shell = |text: &str| NewSpan::tool("shell", format!("{text} {}", large(0))).reads("make install");
    let mut failed = Vec::new();
    for (text, fails) in [("exit 1: half installed", true), ("exit 1: no space", true), ("exit 0", false)] {
        let turn = window.lanes().route(NewSpan::model("make install").calls(["call_0"]))?;
        let result = shell(text).answers("call_0");
        let result = window.lanes().route(if fails { result.failed() } else { result })?;
        failed.extend(fails.then_some([turn, result]));
    }
    for n in 0..6 {
        window.lanes().work.push(large(n))?;
    }
    let pass = window.lanes().externalize().wait()?.admit().map_err(|refusal| refusal.into_reason())?;
    assert!(pass.index().offers().iter().all(|offer| !failed.concat().contains(&offer.span())));
    let proposal = pass.parse(&Answer::prune(["work"]))?;
    assert!(proposal.evicts().iter().all(|span| !failed.concat().contains(span)));
    assert!(matches!(pass.apply(proposal).wait()?, Passed::Pruned(_)));
    assert_eq!(window.lanes().failed.resident(), [failed[0][1], failed[1][1]], "the first cause and the last error");

    while window.utilization() < 23_000 {
        window.lanes().work.push(large(9))?;
    }
    let refusal = window.lanes().externalize().wait()?.admit();
    let freed = match refusal {
        Ok(pass) => pass.fall_back(SupersededReads).wait()?,
        Err(refusal) => refusal.fall_back(SupersededReads).wait()?,
    };
    assert!(matches!(freed, FellBack::Freed(_)));
    assert_eq!(window.lanes().failed.resident(), [failed[0][1], failed[1][1]]);
    Ok(())
}

// The log.

/// B089: recovery took the snapshot of a compaction, though the log went on for 166 messages after it.
#[test]
fn what_came_after_a_compaction_is_there_after_a_crash() -> Outcome {
    let store = memory();
    let mut window = open(store.clone())?;
    let old: Vec<_> = (0..40).map(|n| window.lanes().work.push(large(n))).collect::<Result<_, _>>()?;
    let lanes = window.lanes().externalize().wait()?;
    lanes.work.summarize(&old[..30], summary("thirty messages")?, &lanes.recap).wait()?;
    drop(lanes);
    for n in 0..166 {
        window.lanes().work.push(large(1_000 + n))?;
        drop(window.lanes().externalize().wait()?);
        if n % 50 == 0 {
            drop(window);
            window = resume(store.clone())?;
        }
    }
    let (before, records) = (shown(&window.render()), window.records());
    drop(window);
    let window = resume(store.clone())?;
    assert_eq!(shown(&window.render()), before);
    assert_eq!(before.len(), 1 + 10 + 166);
    assert_eq!(window.records(), records + 1, "the log goes on, it is never written anew");
    assert_eq!(texts(&window.render())[11..], (0..166).map(|n| large(1_000 + n)).collect::<Vec<_>>());
    Ok(())
}

/// B092: the server died during a compaction, which stayed "running" for ever; a second one appeared beside it.
#[test]
fn a_compaction_that_died_is_none_and_the_next_one_runs() -> Outcome {
    let limits = || Limits::of(20_000).index(600).rationale(100).margin(150);
    // The summary's bytes, their reading back, the records; then records whose answer was lost with the process.
    for (nth, fault, happened) in
        [(1, Fault::Fails, false), (2, Fault::Fails, false), (3, Fault::Fails, false), (3, Fault::Unacknowledged, true)]
    {
        let store = Arc::new(Faulty::default());
        let mut window = Window::<Agent, _>::open_with(store.clone(), named("e", limits()), OneByteAToken)?;
        let ids: Vec<_> = (0..6).map(|n| window.lanes().work.push(large(n))).collect::<Result<_, _>>()?;
        drop(window.lanes().externalize().wait()?);
        let first = Answer::prune([""; 0]).summarize(ids[..3].iter().map(ToString::to_string), "three");
        let pass = window.lanes().externalize().wait()?.admit().map_err(|refusal| refusal.into_reason())?;
        let proposal = pass.parse(&first)?;
        store.arm(nth, fault);
        assert!(pass.apply(proposal).wait().is_err());
        drop(window);

        let mut window = Window::<Agent, _>::resume_with(store.clone(), named("e", limits()), OneByteAToken)?;
        let summaries = |window: &Window<Agent, _>| {
            window.render().iter().filter(|message| matches!(message.shown(), Shown::Summary(_))).count()
        };
        assert_eq!((summaries(&window), window.accounting().passes), (usize::from(happened), u64::from(happened)));
        if !happened {
            let pass = window.lanes().externalize().wait()?.admit().map_err(|refusal| refusal.into_reason())?;
            let proposal = pass.parse(&first)?;
            assert!(matches!(pass.apply(proposal).wait()?, Passed::Pruned(_)));
        }
        assert_eq!(summaries(&window), 1);
        let verified = audit::verify(&store, &EpisodeId::new("e"), |_| {});
        assert!(verified.faults.is_empty(), "{:?}", verified.faults);
    }
    Ok(())
}

/// B095: a rewind read the live tail alone, found no earlier version, and deleted the file.
#[test]
fn what_was_archived_is_part_of_the_history() -> Outcome {
    let store = memory();
    let mut window = open(store.clone())?;
    let write = |version: u32| NewSpan::tool("write", format!("f v{version} {}", large(version)));
    let first = window.lanes().work.push(write(1))?;
    window.lanes().work.push(NewSpan::model("wrote v1"))?;
    window.lanes().externalize().wait()?.work.evict(first).wait()?;
    let second = window.lanes().work.push(write(2))?;
    window.lanes().work.push(NewSpan::model("wrote v2"))?;
    drop(window.lanes().externalize().wait()?);
    drop(window);
    let window = resume(store.clone())?;
    let history = history(&store)?;
    let written: Vec<_> = history.spans().filter(|(facts, _)| facts.name.as_deref() == Some("write")).collect();
    let standing: Vec<_> = written.iter().map(|(facts, standing)| (facts.span, standing.clone())).collect();
    assert_eq!(standing, [(first, Standing::Pointer), (second, Standing::Resident)]);
    let version = |span| -> Outcome<String> {
        let text = window.recall(span).wait()?.content().as_text().map(str::to_owned);
        Ok(text.ok_or("text")?.split(' ').nth(1).ok_or("a version")?.to_owned())
    };
    assert_eq!((version(first)?, version(second)?), ("v1".to_owned(), "v2".to_owned()));
    let then = texts(&history.at_turn(&store, 1)?.messages);
    assert!(then.len() == 1 && then[0].starts_with("f v1"), "{then:?}");
    Ok(())
}

/// What a model was sent for a turn.
#[derive(Debug)]
struct Seen {
    answer: SpanId,
    messages: Vec<String>,
    utilization: u64,
    policy: PolicyVersion,
}

/// One move, by number; the others choose among what there is.
type Move = (u8, u16, u8);

#[derive(Default)]
struct Program {
    seen: Vec<Seen>,
    summaries: Vec<SpanId>,
    calls: Vec<String>,
    happened: BTreeSet<&'static str>,
}

impl Program {
    fn step(&mut self, window: &mut Windowed, (kind, size, pick): Move) -> Outcome {
        let text = format!("{kind}-{pick} {}", "x".repeat(usize::from(size)));
        let pick = usize::from(pick);
        let chosen = |ids: &[SpanId]| -> Vec<SpanId> {
            ids.iter().copied().skip(pick % ids.len().max(1)).take(1 + pick % 4).collect()
        };
        match kind {
            0..4 => {
                let lanes = window.lanes();
                match pick % 6 {
                    0 => lanes.schema.push(NewSpan::tool("describe_table", text))?,
                    1 => lanes.rules.push(NewSpan::human(text))?,
                    2 => lanes.failed.push(NewSpan::tool("run", text).failed())?,
                    3 => lanes.work.push(NewSpan::notice(text).role(Role::User))?,
                    4 => lanes.work.push(NewSpan::image(text.into_bytes(), 9, 9))?,
                    _ => lanes.work.push(NewSpan::tool("read", text))?,
                };
            }
            4..8 => {
                let seen = (shown(&window.render()), window.utilization(), window.policy());
                let mut turn = NewSpan::model(text);
                if pick.is_multiple_of(3) {
                    let call = format!("c{}", self.seen.len());
                    turn = turn.calls([call.as_str()]);
                    self.calls.push(call);
                }
                let lane = pick % 5;
                let lanes = window.lanes();
                let answer = if lane == 0 { lanes.target.push(turn)? } else { lanes.work.push(turn)? };
                self.seen.push(Seen { answer, messages: seen.0, utilization: seen.1, policy: seen.2 });
            }
            8 => {
                if let Some(call) = self.calls.pop() {
                    window.lanes().work.push(NewSpan::tool("run", text).answers(call))?;
                }
            }
            9 => drop(window.lanes().externalize().wait()?),
            10 => {
                let lanes = window.lanes().externalize().wait()?;
                let ids = chosen(&lanes.work.resident());
                self.see("evict", lanes.work.evict(ids).wait().is_ok());
                let ids = chosen(&lanes.schema.resident());
                self.see("evict protected", lanes.schema.evict(ids).wait().is_ok());
            }
            11 => {
                let lanes = window.lanes();
                let ids = chosen(&lanes.work.evicted());
                self.see("restore", lanes.work.restore(ids).wait().is_ok());
            }
            12 => {
                let lanes = window.lanes().externalize().wait()?;
                let ids = chosen(&lanes.work.resident());
                let made = lanes.work.summarize(ids, summary("s")?, &lanes.recap).wait();
                self.see("summarize", made.is_ok());
                self.summaries.extend(made.ok());
            }
            13 => {
                let Some(by) = self.summaries.get(pick % self.summaries.len().max(1)).copied() else { return Ok(()) };
                let lanes = window.lanes().externalize().wait()?;
                match pick % 3 {
                    0 => self.see("reground", lanes.recap.reground(by).wait().is_ok()),
                    1 => self.see("evict a summary", lanes.recap.evict(by).wait().is_ok()),
                    _ => {
                        let made = lanes.recap.escalate(by, summary("t")?, Escalation::because("r")?).wait();
                        self.see("escalate", made.is_ok());
                        self.summaries.extend(made.ok());
                    }
                }
            }
            14 => window.change_policy(PolicyVersion::new(format!("p{}", pick % 3)).model("m")).wait()?,
            15..18 => {
                let admitted = window.lanes().externalize().wait()?.admit();
                match admitted {
                    Ok(pass) => {
                        let ids: Vec<_> = pass.index().offers().iter().map(keepspan::Offer::span).collect();
                        let names = ids.iter().map(ToString::to_string);
                        let answer = Answer::prune(names).with_rationale("they are old");
                        if let Ok(proposal) = pass.parse(&answer) {
                            self.see("pass", pass.apply(proposal).wait().is_ok());
                        }
                    }
                    Err(refusal) if pick.is_multiple_of(2) => {
                        self.see("fallback", refusal.fall_back(OldestFirst).wait().is_ok());
                    }
                    Err(refusal) => {
                        self.see("fallback", refusal.fall_back(LargestToolOutput).wait().is_ok());
                    }
                }
            }
            _ => {
                drop(window.lanes().externalize().wait()?);
                let key = window.lanes().work.push(format!("a key {text}"))?;
                window.lanes().work.discard(key, Mutation::new("a key", "ask")?).wait()?;
            }
        }
        Ok(())
    }

    fn see(&mut self, what: &'static str, happened: bool) {
        if happened {
            self.happened.insert(what);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// B096: the log had only the originals, so what the audit showed was never what the model saw.
    #[test]
    fn the_audit_shows_what_the_model_was_sent(moves in prop::collection::vec((0..19_u8, 1..400_u16, any::<u8>()), 1..150), stops in 1..40_usize) {
        let store = memory();
        let limits = || named("e", Limits::of(8_000).index(900).rationale(100).margin(100)).trust_estimates();
        let mut window = Windowed::open_with(store.clone(), limits(), OneByteAToken).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let mut program = Program::default();
        for (at, step) in moves.into_iter().enumerate() {
            // What does not fit the budget is no move.
            let _ = program.step(&mut window, step);
            if at % stops == stops - 1 {
                drop(window.lanes().externalize().wait().map_err(|error| TestCaseError::fail(error.to_string()))?);
                let before = shown(&window.render());
                drop(window);
                window = Windowed::resume_with(store.clone(), limits(), OneByteAToken).map_err(|error| TestCaseError::fail(error.to_string()))?;
                prop_assert_eq!(shown(&window.render()), before);
            }
        }
        drop(window.lanes().externalize().wait().map_err(|error| TestCaseError::fail(error.to_string()))?);
        let history = history(&store).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(history.turns(), program.seen.iter().map(|seen| seen.answer).collect::<Vec<_>>());
        for (turn, seen) in (1..).zip(&program.seen) {
            let then = history.at_turn(&store, turn).map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!(&shown(&then.messages), &seen.messages, "turn {}", turn);
            prop_assert_eq!((then.utilization, &then.policy, then.answer), (seen.utilization, &seen.policy, seen.answer));
        }
    }
}

// The archive.

/// B105: pointers outlived the files they led to. There is no collection of garbage here: a store has no call that deletes,
/// so a pointer holds as long as the store does.
#[test]
fn every_pointer_leads_to_its_text_however_old() -> Outcome {
    let store = memory();
    let mut window = open(store.clone())?;
    let ids: Vec<_> = (0..1_062).map(|n| window.lanes().work.push(large(n))).collect::<Result<_, _>>()?;
    let lanes = window.lanes().externalize().wait()?;
    lanes.work.evict(&ids[..500]).wait()?;
    let by = lanes.work.summarize(&ids[500..1_000], summary("five hundred")?, &lanes.recap).wait()?;
    let second = lanes.recap.escalate(by, summary("many")?, Escalation::because("no room")?).wait()?;
    lanes.recap.evict(second).wait()?;
    lanes.work.evict(&ids[1_000..]).wait()?;
    drop(lanes);
    let resumed = resume(store.clone())?;
    for window in [&window, &resumed] {
        for (n, id) in (0..).zip(&ids) {
            assert_eq!(window.recall(*id).wait()?.content().as_text(), Some(&*large(n)), "{id}");
        }
    }
    let verified = audit::verify(&store, &EpisodeId::new("e"), |_| {});
    assert!(verified.faults.is_empty());
    assert_eq!((verified.blobs, verified.sealed), (1_062 + 2, 0));
    Ok(())
}

/// B107: what was stored for a summary that then failed was never removed.
#[test]
fn a_refused_summary_stores_nothing() -> Outcome {
    let store = memory();
    let mut window = open(store.clone())?;
    let id = window.lanes().work.push(large(1))?;
    drop(window.lanes().externalize().wait()?);
    let before = (format!("{store:?}"), window.records());
    for n in 0..10_u32 {
        let lanes = window.lanes().externalize().wait()?;
        let refused = lanes.work.summarize(id, summary(&format!("{n} {}", "long ".repeat(100)))?, &lanes.recap).wait();
        assert!(matches!(refused, Err(SummarizeError::NotSmaller { .. })));
    }
    assert_eq!((format!("{store:?}"), window.records()), before);
    Ok(())
}

/// B108: an offload went to the store of another session, and a write that failed passed unnoticed.
#[test]
fn each_window_writes_to_its_own_store_and_a_failed_write_is_an_error() -> Outcome {
    let folder = tempfile::tempdir()?;
    let [a, b] = ["a.db", "b.db"].map(|name| folder.path().join(name));
    let mut one = open(store::open(&a)?)?;
    let mut other = open(store::open(&b)?)?;
    one.lanes().work.push("a's own")?;
    let id = other.lanes().work.push(large(2))?;
    other.lanes().externalize().wait()?.work.evict(id).wait()?;
    one.close()?;
    other.close()?;
    std::fs::remove_file(&a)?;
    let alone = resume(store::open(&b)?)?;
    assert_eq!(alone.recall(id).wait()?.content().as_text(), Some(&*large(2)));
    assert!(matches!(alone.ask(&Question::exact("a's own")), Memory::NotRecorded));

    let store = Arc::new(Faulty::default());
    let mut window = open(store.clone())?;
    let id = window.lanes().work.push(large(3))?;
    for nth in 1..=2 {
        store.arm(nth, Fault::Fails);
        assert!(matches!(window.lanes().externalize().wait(), Err(CommitError::Store(_))), "call {nth}");
        assert_eq!(texts(&window.render()), [large(3)], "call {nth}");
    }
    drop(window.lanes().externalize().wait()?.work.evict(id).wait()?);
    assert_eq!(window.recall(id).wait()?.content().as_text(), Some(&*large(3)));
    Ok(())
}

/// B114: a provider that calls every call `call_0` made three different files one.
#[test]
fn a_repeated_call_id_makes_no_two_results_one() -> Outcome {
    let store = memory();
    let mut window = open(store.clone())?;
    let mut results = Vec::new();
    for letter in ["A", "B", "C", "A"] {
        let turn = window.lanes().work.push(NewSpan::model(format!("read {letter}")).calls(["call_0"]))?;
        let text = letter.repeat(400);
        let result = window.lanes().work.push(NewSpan::tool("read", text.as_str()).answers("call_0"))?;
        results.push((turn, result, text));
    }
    let lanes = window.lanes().externalize().wait()?;
    for (turn, result, _) in &results {
        let left = lanes.work.evict(*result).wait()?;
        assert_eq!(left.iter().map(keepspan::Tombstone::span).collect::<Vec<_>>(), [*turn, *result]);
    }
    drop(lanes);
    window.close()?;
    let mut window = resume(store.clone())?;
    for (turn, result, text) in &results {
        assert_eq!(window.recall(*result).wait()?.content(), &Content::from(text.as_str()));
        assert_eq!(window.lanes().work.restore(*result).wait()?, [*turn, *result]);
    }
    let same = |text: &str| match window.ask(&Question::exact(text)) {
        Memory::Recorded { spans, more: None } => spans.iter().map(keepspan::Whereabouts::span).collect(),
        _ => Vec::new(),
    };
    assert_eq!(same(&"A".repeat(400)), [results[0].1, results[3].1], "equal bytes are equal, and stay two spans");
    assert_eq!(same(&"B".repeat(400)), [results[1].1]);
    assert_eq!(audit::verify(&store, &EpisodeId::new("e"), |_| {}).blobs, 3 + 3, "each text is stored once");
    Ok(())
}

// Secrets and names.

/// B122: a key in a tool's output was copied into the summary, and from there into the next one.
#[test]
fn a_key_is_followed_into_every_summary_of_it() -> Outcome {
    const KEY: &str = "API_KEY=sk-test-000";
    let store = memory();
    let mut window = open(store.clone())?;
    let output = window.lanes().work.push(NewSpan::tool("env", format!("{KEY}\n{}", large(1))))?;
    let lanes = window.lanes().externalize().wait()?;
    let text = format!("the environment has {KEY} {}", "y".repeat(90));
    let first = lanes.work.summarize(output, summary(&text)?, &lanes.recap).wait()?;
    let second = lanes.recap.escalate(first, summary(&format!("it has {KEY}"))?, Escalation::because("r")?).wait()?;
    drop(lanes);
    let why = || Mutation::new("a key in the environment", "rotate it");
    let redacted = window.lanes().work.redact(output, why()?).wait()?;
    assert_eq!(redacted.summaries(), [first, second], "where it may be as well");
    for span in redacted.summaries() {
        let text = window.recall(*span).wait()?;
        assert!(text.content().as_text().is_some_and(|text| text.contains(KEY)));
        window.lanes().recap.redact(*span, why()?).wait()?;
    }
    assert!(!texts(&window.render()).concat().contains("sk-test"));
    let history = history(&store)?;
    let mut kept = format!("{history:?}");
    for record in store.read(&EpisodeId::new("e"), 0, u64::MAX)? {
        kept.push_str(&String::from_utf8_lossy(&record));
    }
    for (facts, _) in history.spans() {
        let blob = facts.sha256.and_then(|digest| Store::get(&store, &digest).ok()).unwrap_or_default();
        kept.push_str(&String::from_utf8_lossy(&blob));
    }
    assert!(!kept.contains("sk-test"));
    assert_eq!(audit::verify(&store, &EpisodeId::new("e"), |_| {}).sealed, 3);
    assert_eq!(shown(&resume(store)?.render()), shown(&window.render()));
    Ok(())
}

/// B123: a session's name was part of a path, and one with `..` in it wrote elsewhere.
#[test]
fn an_episode_s_name_is_no_path() -> Outcome {
    let folder = tempfile::tempdir()?;
    let inside = folder.path().join("inside");
    std::fs::create_dir(&inside)?;
    let file = inside.join("episode.db");
    let long = "x".repeat(300);
    let names = ["../../x", "a/b", "CON", "NUL\0", "..", "/etc/passwd", "C:\\x", "e'; --", "\n", "ü🚀", "", &long];
    let store = Arc::new(store::open(&file)?);
    for (n, name) in (0..).zip(names) {
        let opened = Windowed::open_with(store.clone(), named(name, PLENTY), OneByteAToken);
        if name.is_empty() || name.len() > EpisodeId::MAX_BYTES {
            let error = opened.err().ok_or("it was opened")?;
            assert!(matches!(error, OpenError::Name { bytes } if bytes == name.len()), "{error}");
            let resumed = Windowed::resume_with(store.clone(), named(name, PLENTY), OneByteAToken);
            assert!(matches!(resumed, Err(ResumeError::Opening(OpenError::Name { .. }))), "{name}");
            continue;
        }
        let mut window = opened?;
        let id = window.lanes().work.push(large(n))?;
        window.lanes().externalize().wait()?.work.evict(id).wait()?;
    }
    for (n, name) in (0..).zip(names).filter(|(_, name)| !name.is_empty() && name.len() <= EpisodeId::MAX_BYTES) {
        let window = Windowed::resume_with(store.clone(), named(name, PLENTY), OneByteAToken)?;
        let id = SpanId::parse("s1").ok_or("an id")?;
        assert_eq!(window.recall(id).wait()?.content().as_text(), Some(&*large(n)), "{name:?}");
    }
    let unwritten = Windowed::resume_with(store.clone(), named("x", PLENTY), OneByteAToken);
    assert!(matches!(unwritten, Err(ResumeError::Journal(keepspan::JournalError::NoEpisode { .. }))));
    for (folder, expected) in [(folder.path(), "inside"), (&*inside, "episode.db")] {
        let found: Vec<_> =
            std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.file_name())).collect::<Result<_, _>>()?;
        assert_eq!(found, [expected]);
    }
    Ok(())
}

// Policies and what a window can still claim.

/// A change of the model, of the prompt, of the policy: each is an event, also where a resume brings it, and what leaves
/// says under which it left (rule R22).
#[test]
fn each_tombstone_has_the_version_that_was_in_force() -> Outcome {
    let store = memory();
    let versions = [
        PolicyVersion::new("p"),
        PolicyVersion::new("p").model("m1"),
        PolicyVersion::new("p").model("m1").prompt("q1"),
        PolicyVersion::new("p2").model("m1").prompt("q1"),
        PolicyVersion::new("p"),
    ];
    let mut window = open(store.clone())?;
    let mut ids = Vec::new();
    for (n, version) in (0..).zip(&versions) {
        if n == 2 || n == 4 {
            drop(window);
            let episode = Episode::new("e", version.clone()).budget(PLENTY);
            window = Windowed::resume_with(store.clone(), episode, OneByteAToken)?;
        } else {
            window.change_policy(version.clone()).wait()?;
            window.change_policy(version.clone()).wait()?;
        }
        assert_eq!(window.policy(), *version);
        let id = window.lanes().work.push(large(n))?;
        let left = window.lanes().externalize().wait()?.work.evict(id).wait()?;
        assert_eq!(left[0].policy(), version);
        ids.push(id);
    }
    let history = history(&store)?;
    let changes: Vec<_> = history.entries().iter().flat_map(|entry| &entry.happenings).collect();
    let changes: Vec<_> = changes
        .into_iter()
        .filter_map(|happening| match happening {
            Happening::PolicyChanged { policy } => Some(policy.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(changes, versions[1..], "each once");
    for (id, version) in ids.iter().zip(&versions) {
        assert_eq!(history.tombstones(*id).map(|tombstone| tombstone.policy()).collect::<Vec<_>>(), [version]);
    }
    assert_eq!(window.tombstones()?.iter().map(|tombstone| tombstone.policy().clone()).collect::<Vec<_>>(), versions);
    Ok(())
}

/// Since which record, and why; the first cause stays.
#[test]
fn a_lossy_window_says_since_which_record_and_why() -> Outcome {
    use keepspan::Loss::{Escalated, Mutated, Unverified};
    for cause in [Mutated, Escalated, Unverified] {
        let store = Arc::new(Faulty::default());
        let mut window = open(store.clone())?;
        let ids: Vec<_> = (0..4).map(|n| window.lanes().work.push(large(n))).collect::<Result<_, _>>()?;
        let lanes = window.lanes().externalize().wait()?;
        lanes.work.evict(ids[0]).wait()?;
        let by = lanes.work.summarize(&ids[1..3], summary(&"s".repeat(90))?, &lanes.recap).wait()?;
        drop(lanes);
        assert_eq!(window.fidelity(), Fidelity::Reversible);
        let why = match cause {
            Mutated => {
                window.lanes().work.redact(ids[3], Mutation::new("a key", "ask")?).wait()?;
                "removed for good: a key"
            }
            Escalated => {
                let lanes = window.lanes().externalize().wait()?;
                lanes.recap.escalate(by, summary("t")?, Escalation::because("no room")?).wait()?;
                "summarizes summaries: no room"
            }
            _ => {
                store.arm(1, Fault::BitFlip);
                assert!(window.recall(ids[0]).wait().is_err());
                "came back with other bytes"
            }
        };
        let record = window.records() - 1;
        let Fidelity::Lossy { since, cause: found, why: said } = window.fidelity() else { return Err("lossy".into()) };
        assert_eq!((since, found), (record, cause));
        assert!(said.contains(why), "{said}");
        let first = window.fidelity();
        // A later cause changes nothing of that.
        window.lanes().work.push("on")?;
        let key = window.lanes().work.push("key")?;
        window.lanes().work.discard(key, Mutation::new("another key", "ask")?).wait()?;
        assert_eq!(window.fidelity(), first);
        let history = history(&store)?;
        let entry = history.entries().iter().find(|entry| entry.record == since).ok_or("no such record")?;
        let says = |happening: &Happening| match cause {
            Mutated => matches!(happening, Happening::Redacted { .. }),
            Escalated => matches!(happening, Happening::Summarized { escalation: Some(_), .. }),
            // Nothing is written when a read fails: it is the last record before it.
            _ => matches!(happening, Happening::Summarized { escalation: None, .. }),
        };
        assert!(entry.happenings.iter().any(says), "{entry:?}");
        let resumed = resume(store.clone())?;
        if cause != Unverified {
            assert_eq!(resumed.fidelity(), first);
        }
    }
    Ok(())
}
