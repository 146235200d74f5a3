//! A decision in the background: what was pushed meanwhile stays, and a window that changed otherwise refuses it.

use std::sync::Arc;

use keepspan::{
    Authority, CommitError, ContextState, Draft, Episode, Fidelity, Finish, Limits, ModelAnswer, Mutation, NewSpan,
    OldestFirst, OneByteAToken, OpenError, Outcome as Passed, Pass, PolicyVersion, ProposalError, Report, Shown,
    SpanId, Stale, SummaryText, Window,
    store::{MemoryStore, Store as _},
    tool::{Answer, OpenAiChat, Static},
};
use keepspan_tests::{Agent, memory};

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;
type Memory = Arc<MemoryStore>;
type Windowed = Window<Agent, Memory>;

fn limits() -> Limits {
    Limits::of(24_000).index(600).rationale(400).margin(600)
}

fn open(limits: Limits) -> Result<Windowed, OpenError> {
    Window::open_with(memory(), Episode::new("e", "p").budget(limits), OneByteAToken)
}

/// So many messages of 500 tokens, m1 first.
fn filled(messages: u32, limits: Limits) -> Outcome<(Windowed, Vec<SpanId>)> {
    let mut window = open(limits)?;
    let ids = (1..=messages).map(|n| push(&mut window, n)).collect::<Outcome<_>>()?;
    Ok((window, ids))
}

fn push(window: &mut Windowed, n: u32) -> Outcome<SpanId> {
    Ok(window.lanes().work.push(NewSpan::tool("read", format!("{:<500}", format!("m{n}"))))?)
}

fn admitted(window: &mut Windowed) -> Outcome<Pass<'_, Agent, Memory>> {
    Ok(window.lanes().externalize().wait()?.admit().map_err(|refusal| refusal.into_reason())?)
}

fn draft(window: &mut Windowed) -> Outcome<Draft<Agent>> {
    Ok(admitted(window)?.into_draft())
}

/// What the model said is applied to the window as it is by now.
fn decide(window: &mut Windowed, draft: Draft<Agent>, answer: &Answer) -> Outcome<Report> {
    let pass = window.lanes().externalize().wait()?.rebase(draft)?;
    let proposal = pass.parse(answer)?;
    match pass.apply(proposal).wait()? {
        Passed::Pruned(report) => Ok(report),
        Passed::Unchanged => Err("it changed nothing".into()),
    }
}

fn left(report: &Report) -> Vec<SpanId> {
    report.tombstones().iter().map(keepspan::Tombstone::span).collect()
}

fn names(ids: &[SpanId]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}

fn shown(window: &Windowed) -> Vec<String> {
    window.render().iter().map(|message| format!("{message:?}")).collect()
}

fn resident(window: &Windowed) -> Vec<SpanId> {
    let span = |shown| match shown {
        Shown::Span(span) => Some(span),
        _ => None,
    };
    window.render().iter().filter_map(|message| span(message.shown())).collect()
}

fn summarize(names: Vec<String>) -> Answer {
    Answer::prune([""; 0]).summarize(names, "the first files")
}

/// B097: whatever was appended while a summary was computed was destroyed with what it replaced, 229 of 231 messages.
#[test]
fn what_was_pushed_while_a_model_decided_stays_word_for_word() -> Outcome {
    let kept = limits().keep(2_500);
    let lane = || vec!["work".to_owned()];
    let first = |ids: &[SpanId]| names(&ids[..15]);
    type Says = fn(Vec<String>) -> Answer;
    let says: [Says; 2] = [|names| Answer::prune(names), summarize];
    for say in says {
        for by_lane in [false, true] {
            let (mut window, ids) = filled(20, kept)?;
            let draft = draft(&mut window)?;
            let newer = push(&mut window, 21)?;
            let named = if by_lane { lane() } else { first(&ids) };
            let report = decide(&mut window, draft, &say(named))?;
            // m16 to m20 were among the newest then, whatever they are by now.
            assert_eq!(left(&report), ids[..15], "by lane: {by_lane}");
            let stays: Vec<_> = ids[15..].iter().copied().chain([newer]).collect();
            assert_eq!(resident(&window), stays);
            assert_eq!(
                window.render().last().and_then(|last| last.content().as_text()),
                Some(&*format!("{:<500}", "m21"))
            );
            assert_eq!(window.fidelity(), Fidelity::Reversible);
        }
    }
    Ok(())
}

#[test]
fn the_gap_may_be_of_any_length() -> Outcome {
    for pushes in 1..=20 {
        let (mut window, ids) = filled(20, limits())?;
        let draft = draft(&mut window)?;
        let newer: Vec<_> = (21..21 + pushes).map(|n| push(&mut window, n)).collect::<Outcome<_>>()?;
        let report = decide(&mut window, draft, &Answer::prune(["work"]))?;
        assert_eq!(left(&report), ids);
        assert_eq!(resident(&window), newer);
    }
    Ok(())
}

#[test]
fn a_span_that_the_model_has_not_seen_is_refused_by_name() -> Outcome {
    let (mut window, ids) = filled(20, limits().keep(2_500))?;
    let draft = draft(&mut window)?;
    let newer = push(&mut window, 21)?;
    let pass = window.lanes().externalize().wait()?.rebase(draft)?;
    let error = pass.parse(&Answer::prune(names(&[ids[0], newer]))).err().ok_or("it was taken")?;
    assert_eq!(
        error.to_string(),
        "s21 entered after the list that was decided by, so the model has not seen it: leave it out, and what leaves with \
         it"
    );
    let recent = pass.parse(&Answer::prune(names(&ids[15..16])));
    assert!(
        matches!(recent, Err(ProposalError::Recent { span, keep: 2_500 }) if span == ids[15]),
        "it was no candidate"
    );
    let unborn = pass.parse(&Answer::prune(["s22"]));
    assert!(matches!(unborn, Err(ProposalError::Selection(keepspan::SelectionError::Unknown { .. }))));
    drop(pass);
    assert_eq!(resident(&window).len(), 21);
    Ok(())
}

/// A call without its result is no candidate, and becomes none by the result that comes meanwhile.
#[test]
fn an_exchange_that_came_to_its_end_meanwhile_stays() -> Outcome {
    let (mut window, ids) = filled(6, limits())?;
    let turn = window.lanes().work.push(NewSpan::model("t".repeat(800)).calls(["c1"]))?;
    let draft = draft(&mut window)?;
    let result = window.lanes().work.push(NewSpan::tool("read", "r".repeat(800)).answers("c1"))?;
    let pass = window.lanes().externalize().wait()?.rebase(draft)?;
    let named = pass.parse(&Answer::prune(names(&[turn])));
    assert!(matches!(named, Err(ProposalError::Newer { span }) if span == result), "{named:?}");
    let sources = pass.parse(&summarize(names(&[turn])));
    assert!(matches!(sources, Err(ProposalError::Newer { span }) if span == result));
    let proposal = pass.parse(&Answer::prune(["work"]))?;
    assert_eq!(proposal.evicts(), ids);
    let Passed::Pruned(_) = pass.apply(proposal).wait()? else { return Err("unchanged".into()) };
    assert_eq!(resident(&window), [turn, result]);
    Ok(())
}

/// B098: as many deleted as added, so the lengths were equal and the guard saw nothing.
#[test]
fn as_many_out_as_in_is_a_change() -> Outcome {
    let (mut window, ids) = filled(10, limits())?;
    let draft = draft(&mut window)?;
    window.lanes().externalize().wait()?.work.evict(&ids[8..]).wait()?;
    let newer = [push(&mut window, 11)?, push(&mut window, 12)?];
    let before = shown(&window);
    let stale = window.lanes().externalize().wait()?.rebase(draft).err().ok_or("it went on")?;
    assert!(matches!(stale, Stale::Changed { .. }));
    assert!(
        stale.to_string().ends_with("so it was decided by what is not there any more: ask the gate again"),
        "{stale}"
    );
    assert_eq!(shown(&window), before);
    assert_eq!(resident(&window), [&ids[..8], &newer].concat());
    Ok(())
}

type Act = fn(&mut Windowed, &[SpanId]) -> Outcome;

/// Everything but a push: each leaves the window with something else than the model decided by.
const CHANGES: [(&str, Act); 11] = [
    ("evict", |window, ids| {
        drop(window.lanes().externalize().wait()?.work.evict(ids[3]).wait()?);
        Ok(())
    }),
    ("restore", |window, ids| {
        drop(window.lanes().work.restore(ids[0]).wait()?);
        Ok(())
    }),
    ("policy", |window, _| Ok(window.change_policy(PolicyVersion::new("p").model("m2")).wait()?)),
    ("discard", |window, _| {
        let key = push(window, 99)?;
        Ok(window.lanes().work.discard(key, Mutation::new("a key", "ask")?).wait()?)
    }),
    ("redact", |window, ids| {
        drop(window.lanes().work.redact(ids[3], Mutation::new("a key", "ask")?).wait()?);
        Ok(())
    }),
    ("redact_protected", |window, ids| {
        let step = window.redact_protected(ids[0], Mutation::new("a key", "ask")?, Authority::of("owner")?);
        drop(step.wait()?);
        Ok(())
    }),
    ("summarize", |window, ids| {
        let lanes = window.lanes().externalize().wait()?;
        let text = SummaryText::try_from(ModelAnswer::new(Finish::Stop, "files"))?;
        lanes.work.summarize(&ids[3..5], text, &lanes.recap).wait()?;
        Ok(())
    }),
    ("reground", |window, _| {
        let by = window.lanes().recap.resident()[0];
        drop(window.lanes().recap.reground(by).wait()?);
        Ok(())
    }),
    ("another pass", |window, ids| {
        let pass = admitted(window)?;
        let proposal = pass.parse(&Answer::prune(names(&ids[5..8])))?;
        drop(pass.apply(proposal).wait()?);
        Ok(())
    }),
    ("fallback", |window, _| {
        while window.utilization() < 21_000 {
            push(window, 50)?;
        }
        let pass = admitted(window)?;
        drop(pass.fall_back(OldestFirst).wait()?);
        Ok(())
    }),
    ("out and back", |window, ids| {
        window.lanes().externalize().wait()?.work.evict(ids[3]).wait()?;
        drop(window.lanes().work.restore(ids[3]).wait()?);
        Ok(())
    }),
];

/// s1 is a pointer, and s2 and s3 are summarized.
fn varied() -> Outcome<(Windowed, Vec<SpanId>)> {
    let (mut window, ids) = filled(20, limits())?;
    let lanes = window.lanes().externalize().wait()?;
    lanes.work.evict(ids[0]).wait()?;
    let text = SummaryText::try_from(ModelAnswer::new(Finish::Stop, "files"))?;
    lanes.work.summarize(&ids[1..3], text, &lanes.recap).wait()?;
    drop(lanes);
    Ok((window, ids))
}

#[test]
fn every_change_but_a_push_makes_a_draft_stale() -> Outcome {
    for (name, act) in CHANGES {
        let (mut window, ids) = varied()?;
        let draft = draft(&mut window)?;
        act(&mut window, &ids).map_err(|error| format!("{name}: {error}"))?;
        let before = (shown(&window), window.utilization(), window.records());
        match window.lanes().externalize().wait()?.rebase(draft) {
            Err(Stale::Changed { changes }) => assert!(changes > 0, "{name}"),
            other => return Err(format!("{name}: {:?}", other.map(drop)).into()),
        }
        assert_eq!((shown(&window), window.utilization(), window.records()), before, "{name}");
        let pass = admitted(&mut window).map_err(|error| format!("{name}: {error}"))?;
        assert!(pass.parse(&Answer::prune(names(&ids[9..12]))).is_ok(), "{name}: a new one goes on");
    }
    Ok(())
}

#[test]
fn what_changes_nothing_makes_no_draft_stale() -> Outcome {
    let (mut window, ids) = varied()?;
    let draft = draft(&mut window)?;
    window.recall(ids[0]).wait()?;
    window.change_policy("p").wait()?;
    drop(window.lanes().externalize().wait()?);
    let _ = window.lanes().advice();
    drop(admitted(&mut window)?);
    let pass = admitted(&mut window)?;
    assert!(pass.parse(&Answer::prune(["s99"])).is_err());
    pass.wasted(40);
    let nothing = pass.parse(&Answer::prune(names(&ids[..1])))?;
    assert!(matches!(pass.apply(nothing).wait()?, Passed::Unchanged));
    let report = decide(&mut window, draft, &Answer::prune(names(&ids[3..10])))?;
    assert_eq!(left(&report), ids[3..10]);
    Ok(())
}

#[test]
fn of_two_drafts_the_first_to_be_applied_goes_through() -> Outcome {
    let (mut window, ids) = filled(20, limits())?;
    let (one, other) = (draft(&mut window)?, draft(&mut window)?);
    assert_eq!(left(&decide(&mut window, other, &Answer::prune(names(&ids[..5])))?), ids[..5]);
    let stale = window.lanes().externalize().wait()?.rebase(one).err();
    // One for each span that left.
    assert_eq!(stale, Some(Stale::Changed { changes: 5 }));
    Ok(())
}

/// A pass that was rebased and dropped, or let go again, is what it was.
#[test]
fn a_draft_can_be_taken_up_twice_and_dropped() -> Outcome {
    let (mut window, ids) = filled(20, limits())?;
    let before = shown(&window);
    drop(draft(&mut window)?);
    assert_eq!(shown(&window), before);
    let first = draft(&mut window)?;
    let index = first.index().clone();
    push(&mut window, 21)?;
    let again = window.lanes().externalize().wait()?.rebase(first)?.into_draft();
    assert_eq!(*again.index(), index);
    push(&mut window, 22)?;
    let pass = window.lanes().externalize().wait()?.rebase(again)?;
    assert_eq!(*pass.index(), index, "what the model was shown");
    assert!(pass.tool(OpenAiChat, Static).is_some());
    let error = pass.parse(&Answer::prune(["s21"]));
    assert!(matches!(error, Err(ProposalError::Newer { .. })), "the second draft knows no more than the first");
    let proposal = pass.parse(&Answer::prune(["work"]))?;
    assert_eq!(proposal.evicts(), ids);
    Ok(())
}

#[test]
fn a_draft_is_of_one_window() -> Outcome {
    let (mut window, ids) = filled(20, limits())?;
    let (mut other, _) = filled(20, limits())?;
    let draft = draft(&mut window)?;
    let before = shown(&other);
    let stale = other.lanes().externalize().wait()?.rebase(draft).err();
    assert_eq!(stale, Some(Stale::OtherWindow), "its spans have the same ids");
    assert_eq!(shown(&other), before);

    let old = self::draft(&mut window)?;
    let store = window.into_store();
    let mut window = Windowed::resume_with(store, Episode::new("e", "p").budget(limits()), OneByteAToken)?;
    let stale = window.lanes().externalize().wait()?.rebase(old).err().ok_or("it went on")?;
    assert_eq!(stale.to_string(), "the draft is of another window: go on with it there");
    assert_eq!(resident(&window), ids);
    Ok(())
}

/// A pass of a type is a pass of its lanes: the names in the tool are the type's.
#[test]
fn a_draft_says_which_struct_it_is_of() -> Outcome {
    let (mut window, _) = filled(20, limits())?;
    let draft = draft(&mut window)?;
    assert!(format!("{draft:?}").starts_with(&format!("Draft {{ state: {:?}", Agent::NAME)));
    Ok(())
}

/// Two processes with one episode: who resumed it last owns it, and the other loses nothing.
#[test]
fn a_superseded_owner_learns_who_won_and_keeps_what_it_has() -> Outcome {
    let store = memory();
    let episode = || Episode::new("e", "p").budget(limits());
    let mut loser = Windowed::open_with(store.clone(), episode(), OneByteAToken)?;
    let first = push(&mut loser, 1)?;
    drop(loser.lanes().externalize().wait()?);
    let mut winner = Windowed::resume_with(store.clone(), episode(), OneByteAToken)?;
    let theirs = push(&mut winner, 2)?;
    drop(winner.lanes().externalize().wait()?);

    let mine = [push(&mut loser, 3)?, loser.lanes().schema.push("users.id BIGINT")?];
    let expected = loser.records();
    let last = store.length(&keepspan::EpisodeId::new("e"))? - 1;
    let refused = [loser.lanes().externalize().wait().err(), loser.change_policy("p2").wait().err()];
    for error in refused {
        let error = error.ok_or("it was written")?;
        let CommitError::Superseded { episode, expected: would, found } = &error else { return Err(error.into()) };
        assert_eq!((episode.as_str(), *would, *found), ("e", expected, last));
        assert!(error.to_string().contains(&format!("wrote record {last} first")), "{error}");
    }
    let unsaved: Vec<_> =
        loser.unsaved().into_iter().map(|unsaved| (unsaved.span, unsaved.lane, unsaved.content)).collect();
    let text = |n: u32| keepspan::Content::from(format!("{:<500}", format!("m{n}")));
    assert_eq!(unsaved, [(mine[0], "work", text(3)), (mine[1], "schema", "users.id BIGINT".into())]);
    assert_eq!(resident(&loser), [first, mine[0], mine[1]], "its window is whole");

    // What the loser had goes on in the winner's window.
    for (_, lane, content) in unsaved {
        let lanes = winner.lanes();
        if lane == "schema" {
            lanes.schema.push(NewSpan::notice(content))?
        } else {
            lanes.work.push(NewSpan::notice(content))?
        };
    }
    drop(winner.lanes().externalize().wait()?);
    assert_eq!(winner.recall(theirs).wait()?.content(), &text(2));
    let resumed = Windowed::resume_with(store, episode(), OneByteAToken)?;
    assert_eq!(shown(&resumed), shown(&winner));
    Ok(())
}
