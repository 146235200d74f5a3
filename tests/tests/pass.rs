//! A pass from the gate to the commit: what a model is offered, what it may answer, and what comes of it.

use keepspan::{
    ApplyError, Episode, FallBackError, FellBack, Finish, FixedTemplate, Limits, ModelAnswer, NewSpan, OldestFirst,
    OneByteAToken, OpenError, Outcome as Passed, ProposalError, Refused, RestoreError, SelectionError, Shown, SpanId,
    Window,
    gate::Held,
    store::{MemoryStore, Store as _},
    tool::{Answer, AnswerError, Anthropic, Dynamic, Gemini, Mcp, OpenAiChat, OpenAiResponses, Static},
};
use keepspan_tests::{Agent, memory};

type Memory = std::sync::Arc<MemoryStore>;
type Outcome = Result<(), Box<dyn std::error::Error>>;

fn limits() -> Limits {
    Limits::of(24_000).index(600).rationale(400).margin(600)
}

fn window(limits: Limits) -> Result<Window<Agent, Memory>, OpenError> {
    Window::open_with(memory(), Episode::new("e", "p").budget(limits), OneByteAToken)
}

fn id(number: u64) -> SpanId {
    SpanId::parse(&format!("s{number}")).unwrap_or_else(|| unreachable!("a number above 0"))
}

/// s1 rule, s2 schema, s3 to s7 work of 1,000 tokens each, s8 pinned, s9 failed.
fn filled() -> Result<Window<Agent, Memory>, Box<dyn std::error::Error>> {
    let mut window = window(limits())?;
    let lanes = window.lanes();
    lanes.rules.push("never touch production")?;
    lanes.schema.push(NewSpan::tool("describe_table", "c".repeat(500)))?;
    for n in 0..5 {
        lanes.work.push(NewSpan::tool("read", format!("file {n} {}", "x".repeat(993))))?;
    }
    lanes.limits.push("p".repeat(300))?;
    lanes.failed.push("f".repeat(300))?;
    Ok(window)
}

/// R25 and the rest: the numbers are those of the render.
fn consistent(window: &Window<Agent, Memory>) {
    let rendered: u64 = window.render().iter().map(|message| u64::from(message.tokens())).sum();
    assert_eq!(window.utilization(), rendered);
}

fn texts(window: &Window<Agent, Memory>) -> Vec<String> {
    window.render().iter().filter_map(|message| message.content().as_text().map(str::to_owned)).collect()
}

type Pass<'w> = keepspan::Pass<'w, Agent, Memory>;

/// Runs `act` with a pass over the window.
fn with_pass<T>(
    window: &mut Window<Agent, Memory>,
    act: impl FnOnce(Pass<'_>) -> T,
) -> Result<T, Box<dyn std::error::Error>> {
    let pass = window.lanes().externalize().wait()?.admit().map_err(|refusal| refusal.to_string())?;
    Ok(act(pass))
}

/// Applies what `answer` says.
fn decide(window: &mut Window<Agent, Memory>, answer: &Answer) -> Result<Passed, Box<dyn std::error::Error>> {
    with_pass(window, |pass| {
        let proposal = pass.parse(answer)?;
        Ok(pass.apply(proposal).wait()?)
    })?
}

fn refused(window: &mut Window<Agent, Memory>, answer: &Answer) -> Result<ProposalError, Box<dyn std::error::Error>> {
    let before = (texts(window), window.utilization());
    let refused = with_pass(window, |pass| pass.parse(answer).err())?.ok_or("it was accepted")?;
    assert_eq!((texts(window), window.utilization()), before, "a refused proposal changes nothing");
    Ok(refused)
}

#[test]
fn a_pass_evicts_what_the_model_chose_in_one_commit() -> Outcome {
    let mut window = filled()?;
    let before = window.utilization();
    let original = texts(&window);
    let store_length = {
        let lanes = window.lanes().externalize().wait()?;
        drop(lanes);
        window.tombstones()?.len()
    };
    assert_eq!(store_length, 0);
    let report = with_pass(&mut window, |pass| {
        let proposal = pass.parse(&Answer::prune(["s3", "S5"]).with_rationale("superseded").spent(40))?;
        let preview = pass.preview(&proposal)?;
        let passed = pass.apply(proposal).wait()?;
        let Passed::Pruned(report) = passed else { return Err("unchanged".into()) };
        assert_eq!(preview.after, report.pass().after, "the dry run is what happens");
        assert_eq!(preview.before, before);
        Ok::<_, Box<dyn std::error::Error>>(report)
    })??;
    consistent(&window);
    assert_eq!(report.pass().after, window.utilization());
    assert_eq!(report.pass().gross, 2_000);
    assert_eq!(report.pass().rationale, 40, "as the provider reported");
    let left: Vec<_> = report.tombstones().iter().map(|tombstone| tombstone.span()).collect();
    assert_eq!(left, [id(3), id(5)]);
    assert_eq!(window.tombstones()?, report.tombstones());
    // The rationale is in its lane, and no candidate of the next pass.
    let rationale = report.rationale().ok_or("there is a rationale lane")?;
    assert_eq!(window.lanes().decisions.resident(), [rationale]);
    let offered = with_pass(&mut window, |pass| pass.index().offers().iter().map(|o| o.span()).collect::<Vec<_>>())?;
    assert_eq!(offered, [id(4), id(6), id(7)]);
    // And all of it comes back.
    let back = window.undo(&report).wait()?;
    assert_eq!(back, [id(3), id(5)]);
    consistent(&window);
    assert_eq!(texts(&window)[..original.len()], original);
    Ok(())
}

/// R24: the same answer again changes nothing and writes nothing.
#[test]
fn a_pass_with_nothing_new_writes_nothing() -> Outcome {
    let store = memory();
    let mut window = Window::<Agent, _>::open_with(
        store.clone(),
        Episode::new("e", "p").budget(Limits::of(30_000).index(900).rationale(100).margin(100)),
        OneByteAToken,
    )?;
    for n in 0..18 {
        window.lanes().work.push(format!("{n}{}", "x".repeat(1_000)))?;
    }
    let answer = Answer::prune(["s1", "s2"]);
    let mut lengths = Vec::new();
    for round in 0..3 {
        let pass = window.lanes().externalize().wait()?.admit().map_err(|refusal| refusal.to_string())?;
        let proposal = pass.parse(&answer)?;
        assert_eq!(proposal.already().len(), if round == 0 { 0 } else { 2 });
        let passed = pass.apply(proposal).wait()?;
        assert_eq!(matches!(passed, Passed::Unchanged), round > 0);
        lengths.push((store.length(&keepspan::EpisodeId::new("e"))?, window.utilization()));
    }
    assert_eq!(lengths[0], lengths[1]);
    assert_eq!(lengths[0], lengths[2]);
    assert_eq!(window.accounting().passes, 1);
    assert_eq!(window.accounting().unchanged, 2);
    // An empty answer is an answer: nothing to do.
    window.lanes().work.push("x".repeat(2_000))?;
    let pass = window.lanes().externalize().wait()?.admit().map_err(|refusal| refusal.to_string())?;
    let nothing = pass.parse(&Answer::prune(Vec::<String>::new()))?;
    assert!(matches!(pass.apply(nothing).wait()?, Passed::Unchanged));
    Ok(())
}

#[test]
fn every_wrong_name_is_refused_by_name() -> Outcome {
    let mut window = filled()?;
    window.lanes().work.push(NewSpan::model("q".repeat(900)).calls(["c1"]))?; // s10, pending
    let prune = |names: &[&str]| Answer::prune(names.iter().copied());
    use ProposalError::{Kept, NoId, Overlap, ProtectedSource, Selection, Twice};
    assert!(
        matches!(refused(&mut window, &prune(&["s99"]))?, Selection(SelectionError::Unknown { span, .. }) if span == id(99))
    );
    assert!(matches!(refused(&mut window, &prune(&["the schema"]))?, NoId { .. }));
    assert!(matches!(refused(&mut window, &prune(&["s1"]))?, Kept { lane: "rules", .. }));
    assert!(matches!(refused(&mut window, &prune(&["s3", "s8"]))?, Kept { lane: "limits", span } if span == id(8)));
    assert!(matches!(refused(&mut window, &prune(&["s10"]))?, Selection(SelectionError::Pending { .. })));
    assert!(matches!(refused(&mut window, &prune(&["s3", "S3"]))?, Twice { span } if span == id(3)));
    let overlap = prune(&["s3"]).summarize(["s3", "s4"], "read two files");
    assert!(matches!(refused(&mut window, &overlap)?, Overlap { span } if span == id(3)));
    let paraphrase = Answer::prune([""; 0]).summarize(["s2"], "there is a table");
    assert!(matches!(refused(&mut window, &paraphrase)?, ProtectedSource { lane: "schema", .. }));
    Ok(())
}

/// R14: what cannot fit is said so, whatever there is to take.
#[test]
fn a_fallback_that_cannot_reach_the_limit_says_what_stays() -> Outcome {
    let mut window = window(limits())?;
    for text in ["r".repeat(13_000), "q".repeat(13_000)] {
        window.lanes().rules.push(text)?;
    }
    for _ in 0..2 {
        window.lanes().work.push("w".repeat(1_000))?;
    }
    let refusal = window.lanes().externalize().wait()?.admit().err().ok_or("it was admitted")?;
    let refused = refusal.fall_back(OldestFirst).wait();
    assert!(matches!(
        refused,
        Err(FallBackError::Unfittable { needed: 26_000..28_000, budget: 24_000, held: Held { kept: 26_000, .. }, .. })
    ));
    assert_eq!(window.utilization(), 28_000);
    Ok(())
}

/// R15: ids are the same in every window, so a proposal and a report are of one window, and a proposal of one state.
#[test]
fn what_was_decided_for_one_window_does_nothing_to_another() -> Outcome {
    let (mut one, mut other) = (filled()?, filled()?);
    let answer = Answer::prune(["s3"]).summarize(["s4", "s5"], "read two files");
    let proposal = with_pass(&mut one, |pass| pass.parse(&answer))??;
    let before = texts(&other);
    let refused =
        with_pass(&mut other, |pass| (pass.preview(&proposal).err(), pass.apply(proposal.clone()).wait().err()))?;
    assert!(matches!(refused, (Some(ApplyError::OtherWindow), Some(ApplyError::OtherWindow))), "{refused:?}");
    // Any pass may apply it while the window is as it was.
    let passed = with_pass(&mut one, |pass| pass.apply(proposal.clone()).wait())??;
    let Passed::Pruned(report) = passed else { return Err("unchanged".into()) };
    for _ in 0..report.summaries()[0].number() {
        other.lanes().rules.push("never touch production")?;
    }
    drop(other.lanes().externalize().wait()?);
    assert!(matches!(other.undo(&report).wait(), Err(RestoreError::OtherWindow)));
    assert_eq!(texts(&other)[..before.len()], before);
    for _ in 0..4 {
        one.lanes().work.push("z".repeat(1_000))?;
    }
    let refused = with_pass(&mut one, |pass| pass.apply(proposal).wait().err())?;
    assert!(matches!(refused, Some(ApplyError::Outdated)), "{refused:?}");
    one.undo(&report).wait()?;
    let twice = one.undo(&report).wait();
    assert!(matches!(twice, Err(RestoreError::Selection(SelectionError::Resident { .. }))), "{twice:?}");
    Ok(())
}

/// R24: lanes named again name nothing new, though passes turned out cheaper than expected.
#[test]
fn a_lane_named_again_gives_nothing_new() -> Outcome {
    let mut window = window(limits())?;
    for n in 0..2 {
        window.lanes().work.push(format!("{n}{}", "x".repeat(2_000)))?;
    }
    let lanes = window.lanes().externalize().wait()?;
    let text = ModelAnswer::new(Finish::Stop, "y".repeat(3_000)).try_into()?;
    lanes.work.summarize([id(1), id(2)], text, &lanes.recap).wait()?;
    let usual = usize::try_from(window.prices().pointer)?;
    for size in [1_000, 1_000, 1_000, usual, usual - 1] {
        window.lanes().work.push("z".repeat(size))?;
        window.lanes().rules.push("go on")?;
    }
    let answer = Answer::prune(["work"]);
    let first = decide(&mut window, &answer)?;
    assert!(matches!(first, Passed::Pruned(report) if report.tombstones().len() == 3));
    assert!(window.prices().pointer < usual as u64, "pointers were cheaper");
    let before = window.utilization();
    let again = decide(&mut window, &answer)?;
    assert!(matches!(again, Passed::Unchanged), "{again:?}");
    assert_eq!(window.utilization(), before);
    Ok(())
}

/// R24: what a pass writes makes nothing older, so a lane named again does not reach into what the budget keeps.
#[test]
fn a_pass_does_not_move_what_the_budget_keeps() -> Outcome {
    let mut window = window(limits().keep(2_500))?;
    for n in 0..10 {
        window.lanes().work.push(format!("{n}{}", "x".repeat(999)))?;
    }
    let answer = Answer::prune(["work"]).with_rationale("r".repeat(600));
    assert!(matches!(decide(&mut window, &answer)?, Passed::Pruned(report) if report.tombstones().len() == 7));
    assert_eq!(window.lanes().work.resident(), [id(8), id(9), id(10)]);
    let refused = window.lanes().externalize().wait()?.admit().err().ok_or("it was admitted")?;
    assert!(matches!(refused.reason(), Refused::NothingToPrune { held: Held { recent: 3_600, .. }, .. }), "{refused}");
    Ok(())
}

/// A name of any length can come from a model that calls a tool there is not: it must not fill the index, nor a pointer.
#[test]
fn a_long_tool_name_does_not_hide_the_other_candidates() -> Outcome {
    let mut window = filled()?;
    let long = window.lanes().work.push(NewSpan::tool("t".repeat(3_000), "z".repeat(2_000)))?;
    let offered = with_pass(&mut window, |pass| pass.index().offers().len())?;
    assert!(offered >= 4, "{offered} offered");
    let Passed::Pruned(report) = decide(&mut window, &Answer::prune([long.to_string()]))? else {
        return Err("unchanged".into());
    };
    assert!(report.pass().pointers < 300, "{report:?}");
    Ok(())
}

/// A summary is no pointer: a long one must not make pointers look too dear for anything to leave.
#[test]
fn a_long_summary_does_not_price_out_what_comes_after() -> Outcome {
    let mut window = window(limits())?;
    let fill = |window: &mut Window<Agent, Memory>| {
        (0..12).try_for_each(|n| window.lanes().work.push(format!("{n}{}", "x".repeat(1_500))).map(drop))
    };
    fill(&mut window)?;
    let before = window.prices().pointer;
    let answer = Answer::prune(["s1"]).summarize(["s3", "s4"], "long ".repeat(500));
    assert!(matches!(decide(&mut window, &answer)?, Passed::Pruned(_)));
    assert!(window.prices().pointer <= before, "{:?}", window.prices());
    fill(&mut window)?;
    let refusal = window.lanes().externalize().wait()?.admit().err().ok_or("it was admitted")?;
    assert!(matches!(refusal.fall_back(OldestFirst).wait()?, FellBack::Freed(_)));
    assert!(window.utilization() < 20_000);
    Ok(())
}

/// R14: a span smaller than a pointer frees nothing alone, yet a window of them folds into one.
#[test]
fn a_fallback_folds_a_window_of_small_spans() -> Outcome {
    let mut window = window(limits())?;
    for n in 0..320 {
        window.lanes().work.push(format!("{n:04}{}", "x".repeat(76)))?;
    }
    let refusal = window.lanes().externalize().wait()?.admit().err().ok_or("it was admitted")?;
    let FellBack::Freed(report) = refusal.fall_back(OldestFirst).wait()? else { return Err("nothing left".into()) };
    assert_eq!(report.pass().after, window.utilization());
    assert!(window.utilization() < 20_000 && window.utilization() > 19_900, "no more than needed: {window:?}");
    consistent(&window);
    Ok(())
}

/// R6, R14: where the template is longer than what it stands for, pointers do.
#[test]
fn a_template_longer_than_its_sources_gives_way_to_pointers() -> Outcome {
    for size in 98..130 {
        let mut window = window(limits())?;
        window.lanes().rules.push("r".repeat(19_990 - size))?;
        for _ in 0..2 {
            window.lanes().work.push(NewSpan::tool("read_file", "w".repeat(size)))?;
        }
        let refusal = window.lanes().externalize().wait()?.admit().err().ok_or("it was admitted")?;
        let FellBack::Freed(report) = refusal.fall_back(FixedTemplate).wait()? else {
            return Err("nothing left".into());
        };
        assert_eq!(report.pass().after, window.utilization(), "of {size}");
        assert!(window.utilization() < 20_000, "of {size}");
    }
    Ok(())
}
