//! A pass from the gate to the commit: what a model is offered, what it may answer, and what comes of it.

use keepspan::{
    ApplyError, ContextState, Episode, FallBackError, FellBack, Finish, FixedTemplate, Limits, ModelAnswer, NewSpan,
    OldestFirst, OneByteAToken, OpenError, Outcome as Passed, ProposalError, PruneEvent, Report, RestoreError,
    SelectionError, SpanId, Spans, Window,
    audit::History,
    gate::{Held, Refused},
    store::{MemoryStore, Store as _},
    tool::{
        Answer, AnswerError, Anthropic, Dynamic, Gemini, Mcp, OpenAiChat, OpenAiResponses, Provider, Static, check,
    },
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

fn summarize<N: Into<String>>(names: impl IntoIterator<Item = N>, text: impl Into<String>) -> Answer {
    Answer::prune([""; 0]).summarize(names, text)
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

/// Parses an answer and applies it.
fn pruned(window: &mut Window<Agent, Memory>, answer: &Answer) -> Result<Report, Box<dyn std::error::Error>> {
    with_pass(window, |pass| {
        let proposal = pass.parse(answer)?;
        match pass.apply(proposal).wait()? {
            Passed::Pruned(report) => Ok(report),
            Passed::Unchanged => Err("it changed nothing".into()),
        }
    })?
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
    assert_eq!(window.uncommitted().spans, 1, "the rationale, until it is externalized with what is pushed next");
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
    let secret = window.lanes().work.push("AKIA")?; // s11
    window.lanes().work.discard(secret, keepspan::Mutation::new("leaked key", "ask the operator")?).wait()?;
    let discarded = refused(&mut window, &prune(&["s3", "s11"]))?;
    assert!(matches!(discarded, Selection(SelectionError::Discarded { span }) if span == secret));
    let overlap = prune(&["s3"]).summarize(["s3", "s4"], "read two files");
    assert!(matches!(refused(&mut window, &overlap)?, Overlap { span } if span == id(3)));
    let paraphrase = summarize(["s2"], "there is a table");
    assert!(matches!(refused(&mut window, &paraphrase)?, ProtectedSource { lane: "schema", .. }));
    Ok(())
}

/// Every provider takes both tools in both forms, and neither offers what is protected (R15).
#[test]
fn the_tools_offer_what_may_leave_and_nothing_else() -> Outcome {
    fn names(definition: &serde_json::Value, property: &str) -> Vec<String> {
        let found = ["/function/parameters", "/parameters", "/input_schema", "/parametersJsonSchema", "/inputSchema"];
        let schema = found.iter().find_map(|at| definition.pointer(at));
        let names = schema.and_then(|schema| schema.pointer(&format!("/properties/{property}/items/enum")));
        names
            .and_then(serde_json::Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|n| n.as_str())
            .map(str::to_owned)
            .collect()
    }
    fn offered<P: Provider>(pass: &Pass<'_>, provider: P) -> Result<[Vec<String>; 4], Box<dyn std::error::Error>> {
        let definitions = [
            (pass.tool(provider, Dynamic), "spans"),
            (pass.summary_tool(provider, Dynamic), "spans"),
            (pass.tool(provider, Static), "lanes"),
            (pass.summary_tool(provider, Static), "lanes"),
        ];
        let mut found = <[Vec<String>; 4]>::default();
        for (found, (definition, property)) in found.iter_mut().zip(definitions) {
            let definition = definition.ok_or("something is offered")?;
            check(provider, &definition)?;
            *found = names(&definition, property);
        }
        Ok(found)
    }
    let mut window = filled()?;
    let recap = with_pass(&mut window, |pass| {
        let proposal = pass.parse(&summarize(["s3"], "y".repeat(500)))?;
        let Passed::Pruned(report) = pass.apply(proposal).wait()? else { return Err("unchanged".into()) };
        report.summaries().first().copied().ok_or_else(|| Box::<dyn std::error::Error>::from("one summary"))
    })??;
    let all = with_pass(&mut window, |pass| {
        Ok::<_, Box<dyn std::error::Error>>([
            offered(&pass, OpenAiChat)?,
            offered(&pass, OpenAiResponses)?,
            offered(&pass, Anthropic)?,
            offered(&pass, Gemini)?,
            offered(&pass, Mcp)?,
        ])
    })??;
    let work: Vec<_> = (4..=7).map(|number| id(number).to_string()).collect();
    let with_summary = [work.clone(), vec![recap.to_string()]].concat();
    // A summary may leave, and is no source of another one (R4).
    let expected = [with_summary, work, vec!["work".into(), "recap".into()], vec!["work".into()]];
    for found in all {
        assert_eq!(found, expected);
    }
    Ok(())
}

/// R3 to R5: a summary by an answer, evicted by a later one, never summarized again.
#[test]
fn a_summary_leaves_like_any_span_and_is_no_source() -> Outcome {
    let mut window = filled()?;
    let answer = summarize(["s3", "s4"], "y".repeat(700));
    let report = pruned(&mut window, &answer)?;
    let [summary] = report.summaries() else { return Err("one summary".into()) };
    assert_eq!(window.derivation(*summary).map(|from| from.sources().to_vec()), Some(vec![id(3), id(4)]));
    assert!(report.tombstones().iter().all(|tombstone| tombstone.replaced_by() == Some(*summary)));
    consistent(&window);
    let again = summarize([summary.to_string(), "s5".into()], "z");
    assert!(matches!(refused(&mut window, &again)?, ProposalError::DerivedSource { lane: "recap", .. }));
    let evicted = pruned(&mut window, &Answer::prune([summary.to_string()]))?;
    assert_eq!(evicted.tombstones()[0].derivation(), [id(3), id(4)]);
    consistent(&window);
    assert_eq!(window.undo(&evicted).wait()?, [*summary]);
    assert_eq!(window.undo(&report).wait()?, [id(3), id(4)]);
    consistent(&window);
    // Undone once; there is nothing to undo a second time.
    let before = texts(&window);
    assert!(window.undo(&report).wait().is_err());
    assert_eq!(texts(&window), before);
    Ok(())
}

/// R16: whichever part is named, the exchange leaves as a whole; in two parts of an answer it cannot leave twice.
#[test]
fn an_exchange_named_by_one_part_leaves_as_a_whole() -> Outcome {
    let mut window = filled()?;
    let lanes = window.lanes();
    let call = lanes.work.push(NewSpan::model("c".repeat(500)).calls(["a", "b"]))?;
    let first = lanes.work.push(NewSpan::tool("run", "r".repeat(500)).answers("a"))?;
    lanes.rules.push("in between")?;
    let second = lanes.work.push(NewSpan::tool("run", "q".repeat(500)).answers("b"))?;
    for named in [vec![call], vec![first], vec![second], vec![second, call]] {
        let names = named.iter().map(SpanId::to_string);
        let report = pruned(&mut window, &Answer::prune(names))?;
        let left: Vec<_> = report.tombstones().iter().map(|tombstone| tombstone.span()).collect();
        assert_eq!(left, [call, first, second]);
        assert_eq!(window.undo(&report).wait()?, left);
    }
    let twice = Answer::prune([call.to_string()]).summarize([second.to_string()], "ran it");
    assert!(matches!(refused(&mut window, &twice)?, ProposalError::Overlap { .. }));
    // A result in a lane that never leaves holds the whole exchange.
    let held = window.lanes().work.push(NewSpan::model("c".repeat(500)).calls(["c"]))?;
    window.lanes().limits.push(NewSpan::tool("run", "the quota is 3").answers("c"))?;
    let held = Answer::prune([held.to_string()]);
    assert!(matches!(refused(&mut window, &held)?, ProposalError::Kept { lane: "limits", .. }));
    Ok(())
}

/// R15: the index offers no protected span, yet one that is named and stored may become a pointer; a rationale may not
/// (R13), nor what is too new.
#[test]
fn what_is_not_offered_is_judged_by_its_own_rule() -> Outcome {
    let mut window = filled()?;
    let offered = with_pass(&mut window, |pass| pass.index().offers().iter().map(|o| o.lane()).collect::<Vec<_>>())?;
    assert_eq!(offered, ["work"; 5]);
    let report = pruned(&mut window, &Answer::prune(["s2", "s9"]).with_rationale("the schema was read again"))?;
    let lanes: Vec<_> = report.tombstones().iter().map(|tombstone| tombstone.lane().to_owned()).collect();
    assert_eq!(lanes, ["schema", "failed"]);
    let rationale = report.rationale().ok_or("there is a lane for it")?.to_string();
    let named = refused(&mut window, &Answer::prune([rationale]))?;
    assert!(matches!(named, ProposalError::NeverCandidate { lane: "decisions", .. }));

    let mut window = self::window(limits().keep(1_500))?;
    for _ in 0..6 {
        window.lanes().work.push("w".repeat(1_000))?;
    }
    let offered = with_pass(&mut window, |pass| pass.index().offers().len())?;
    assert_eq!(offered, 4, "the sixth, and the fifth, which reaches into the newest 1,500");
    assert!(matches!(
        refused(&mut window, &Answer::prune(["s1", "s5"]))?,
        ProposalError::Recent { span, keep: 1_500 } if span == id(5)
    ));
    Ok(())
}

/// By lane, whatever the capitals: each candidate in it.
#[test]
fn lanes_are_named_in_any_case_and_only_those_offered() -> Outcome {
    for name in ["work", "Work", " WORK "] {
        let mut window = filled()?;
        let report = pruned(&mut window, &Answer::prune([name]))?;
        let left: Vec<_> = report.tombstones().iter().map(|tombstone| tombstone.span()).collect();
        assert_eq!(left, [3, 4, 5, 6, 7].map(id), "{name}");
    }
    let mut window = filled()?;
    for lane in ["schema", "rules", "LIMITS", "decisions"] {
        let refused = refused(&mut window, &Answer::prune(["work", lane]))?;
        let expected = "work, recap";
        assert!(matches!(&refused, ProposalError::LaneNotOffered { offered, .. } if offered == expected), "{refused}");
    }
    let sources = summarize(["recap"], "all of it");
    assert!(
        matches!(refused(&mut window, &sources)?, ProposalError::LaneNotOffered { offered, .. } if offered == "work")
    );
    // Lanes and ids are two forms; a mixture is neither.
    assert!(
        matches!(refused(&mut window, &Answer::prune(["work", "s3"]))?, ProposalError::NoId { name, .. } if name == "work")
    );
    let response = serde_json::json!({
        "stop_reason": "tool_use", "type": "message", "role": "assistant",
        "content": [{ "type": "tool_use", "id": "t", "name": "prune_context", "input": { "lanes": ["wrok"] } }],
    });
    let misspelt = Answer::read(Anthropic, &response)?;
    assert!(matches!(refused(&mut window, &misspelt)?, ProposalError::NoLane { name, .. } if name == "wrok"));
    assert!(matches!(Answer::read(Anthropic, &serde_json::json!({})), Err(AnswerError::NotAResponse { .. })));
    Ok(())
}

/// R11: what passes really cost is what the next one is expected to: up at once, down slowly, and no further than what
/// the trigger leaves.
#[test]
fn prices_follow_what_passes_cost() -> Outcome {
    let mut window = filled()?;
    let declared = window.prices();
    assert_eq!((declared.index, declared.rationale, declared.rationale_exceeds_policy), (600, 400, false));
    let read = with_pass(&mut window, |pass| pass.index().tokens())?;
    pruned(&mut window, &Answer::prune(["s3"]).spent(40))?;
    let cheaper = window.prices();
    assert_eq!(cheaper.index, 600 - (600 - read).div_ceil(4));
    assert_eq!(cheaper.rationale, 400 - 360_u64.div_ceil(4));
    assert!(cheaper.pointer < declared.pointer, "shorter than the longest name it was priced for");
    let more = |window: &mut Window<Agent, Memory>| -> Outcome {
        for _ in 0..4 {
            window.lanes().work.push("m".repeat(1_000))?;
        }
        Ok(())
    };
    more(&mut window)?;
    pruned(&mut window, &Answer::prune(["s4"]).spent(1_000))?;
    assert_eq!(window.prices().rationale, 1_000);
    more(&mut window)?;
    let margin = with_pass(&mut window, |pass| pass.admitted().ask.margin)?;
    assert_eq!(margin, 1_000, "a pass has to free more than it writes");
    pruned(&mut window, &Answer::prune(["s5"]).spent(50_000))?;
    let dearest = window.prices();
    // Of 24,000 the trigger leaves 4,000, of which the index takes 600.
    assert_eq!((dearest.rationale, dearest.rationale_exceeds_policy), (3_400, true));
    // The gate goes by it: what would have been enough is not any more.
    let refusal = window.lanes().externalize().wait()?.admit().err().ok_or("too dear")?;
    assert_eq!(refusal.reason().reason(), "insufficient_reclamation");
    Ok(())
}

/// The state of a struct that keeps no rationale and has nowhere to put a summary.
#[derive(keepspan::ContextState)]
struct Bare {
    #[evictable(otherwise)]
    work: keepspan::Spans,
}

#[test]
fn without_a_lane_for_it_there_is_no_summary_and_no_rationale() -> Outcome {
    let episode = Episode::new("e", "p").budget(limits());
    let mut window = Window::<Bare, _>::open_with(memory(), episode, OneByteAToken)?;
    for _ in 0..6 {
        window.lanes().work.push("w".repeat(1_000))?;
    }
    let pass = window.lanes().externalize().wait()?.admit().map_err(|refusal| refusal.to_string())?;
    assert!(pass.tool(Mcp, Static).is_some() && pass.summary_tool(Mcp, Static).is_none());
    let refused = pass.parse(&summarize(["s1"], "w")).err();
    assert!(matches!(refused, Some(ProposalError::NoDerivedLane)), "{refused:?}");
    let proposal = pass.parse(&Answer::prune(["s1"]).with_rationale("r".repeat(200)))?;
    assert_eq!(pass.preview(&proposal)?.rationale, 0);
    let Passed::Pruned(report) = pass.apply(proposal).wait()? else { return Err("unchanged".into()) };
    assert_eq!((report.rationale(), report.pass().kept, report.pass().rationale), (None, 0, 202));
    assert_eq!(window.render().len(), 6);
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

/// R24: an answer that names the lane of its own summary does not take it the second time, only after something new.
#[test]
fn an_answer_does_not_take_its_own_summary() -> Outcome {
    let mut window = filled()?;
    for _ in 0..10 {
        window.lanes().work.push("w".repeat(1_000))?;
    }
    let answer = Answer::prune(["recap"]).summarize(["s3", "s4"], "read two files ".repeat(10)).spent(100);
    let report = pruned(&mut window, &answer)?;
    assert!(matches!(decide(&mut window, &answer)?, Passed::Unchanged));
    window.lanes().rules.push("go on")?;
    let again = pruned(&mut window, &answer)?;
    assert_eq!(again.tombstones()[0].span(), report.summaries()[0]);
    Ok(())
}

/// R22: what was decided under one policy would have tombstones that name another.
#[test]
fn a_proposal_does_not_outlive_its_policy() -> Outcome {
    let mut window = filled()?;
    let proposal = with_pass(&mut window, |pass| pass.parse(&Answer::prune(["s3"])))??;
    window.change_policy("p").wait()?;
    assert!(with_pass(&mut window, |pass| pass.preview(&proposal).is_ok())?);
    window.change_policy("p2").wait()?;
    let refused = with_pass(&mut window, |pass| pass.apply(proposal).wait().err())?;
    assert!(matches!(refused, Some(ApplyError::Outdated)), "{refused:?}");
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

/// Two lanes may differ in capitals alone.
#[test]
fn a_lane_is_named_as_it_is_written_before_capitals_stop_to_matter() -> Outcome {
    #[derive(ContextState)]
    #[allow(non_snake_case)]
    struct Logs {
        #[precondition]
        LOG: Spans,
        #[evictable]
        log: Spans,
    }
    let mut window = Window::<Logs, _>::open_with(memory(), Episode::new("e", "p").budget(limits()), OneByteAToken)?;
    window.lanes().LOG.push("c".repeat(500))?;
    for _ in 0..3 {
        window.lanes().log.push("x".repeat(1_000))?;
    }
    let pass = window.lanes().externalize().wait()?.admit().map_err(|refusal| refusal.to_string())?;
    assert_eq!(pass.parse(&Answer::prune(["log"]))?.evicts(), [id(2), id(3), id(4)]);
    assert!(matches!(pass.parse(&Answer::prune(["LOG"])), Err(ProposalError::LaneNotOffered { .. })));
    Ok(())
}

/// R15, R16: an exchange is offered when all of it may be, and is as new as its last part.
#[test]
fn an_exchange_is_offered_when_all_its_parts_may_leave() -> Outcome {
    for (keep, offered) in [(1_000, &[1_u64][..]), (1_001, &[])] {
        let mut window = window(limits().keep(keep))?;
        let lanes = window.lanes();
        lanes.work.push(NewSpan::model("c".repeat(4_000)).calls(["a"]))?; // s1
        lanes.work.push(NewSpan::tool("run", "r".repeat(4_000)).answers("a"))?;
        lanes.rules.push("r".repeat(1_000))?;
        let found = window.lanes().externalize().wait()?.admit();
        let found = found.map(|pass| pass.index().offers().iter().map(|offer| offer.span()).collect::<Vec<_>>());
        assert_eq!(found.unwrap_or_default(), offered.iter().copied().map(id).collect::<Vec<_>>(), "keep {keep}");
    }
    // Named, the boundary is the same.
    let mut window = window(limits().keep(2_000))?;
    for _ in 0..6 {
        window.lanes().work.push("w".repeat(1_000))?;
    }
    assert!(matches!(refused(&mut window, &Answer::prune(["s5"]))?, ProposalError::Recent { .. }));
    pruned(&mut window, &Answer::prune(["s4"]))?;
    // What the schema said is protected, so the call that asked for it is not offered either.
    let mut window = filled()?;
    window.lanes().work.push(NewSpan::model("c".repeat(900)).calls(["a"]))?;
    window.lanes().schema.push(NewSpan::tool("describe_table", "r".repeat(900)).answers("a"))?;
    let offered = with_pass(&mut window, |pass| pass.index().offers().iter().map(|o| o.span()).collect::<Vec<_>>())?;
    assert_eq!(offered, [3, 4, 5, 6, 7].map(id));
    Ok(())
}

/// R7, R24: what is on record is what happened, and its numbers add up, folded pointers and summaries included.
#[test]
fn the_record_of_a_pass_is_what_it_did() -> Outcome {
    let store = memory();
    let mut window =
        Window::<Agent, _>::open_with(store.clone(), Episode::new("e", "p").budget(limits()), OneByteAToken)?;
    for n in 0..9 {
        window.lanes().work.push(format!("{n}{}", "x".repeat(999)))?;
    }
    let add_up = |report: &Report| {
        let pass = report.pass();
        assert_eq!(pass.before - pass.after, pass.gross - pass.pointers - pass.kept, "{pass:?}");
        assert_eq!(pass.spans, report.tombstones().len() as u64);
    };
    let answer = Answer::prune(["s1", "s3"]).summarize(["s5"], "5".repeat(300)).summarize(["s7"], "7".repeat(300));
    let report = pruned(&mut window, &answer)?;
    add_up(&report);
    assert_eq!(report.pass().rationale, 5 + 2 * (2 + 300));
    assert_eq!(window.tombstones()?, report.tombstones());
    let history = History::read(&store, &keepspan::EpisodeId::new("e"))?;
    let passes = history.accounting().events().filter(|event| matches!(event, PruneEvent::Passed(_)));
    assert_eq!(passes.collect::<Vec<_>>(), [&PruneEvent::Passed(report.pass().clone())]);
    // The pointer of s2 folds with those on both its sides: more goes than comes.
    let fold = pruned(&mut window, &Answer::prune(["s2"]))?;
    add_up(&fold);
    assert_eq!(fold.pass().pointers, 0);
    assert!(fold.pass().gross > 1_000, "{fold:?}");
    // The summaries entered one after the other.
    let summaries = report.summaries().iter().map(SpanId::to_string);
    let gone = pruned(&mut window, &Answer::prune(summaries))?;
    let ranges: Vec<_> = gone.tombstones().iter().map(|tombstone| tombstone.token_range()).collect();
    assert!(matches!(&ranges[..], [one, two] if one.start == 9_000 && one.end == two.start), "{ranges:?}");
    window.undo(&gone).wait()?;
    // Undone, they have left for good, and that is on record as well.
    let before = window.tombstones()?.len();
    assert_eq!(window.undo(&report).wait()?, [1, 3, 5, 7].map(id));
    let undone: Vec<_> = window.tombstones()?.iter().skip(before).map(|tombstone| tombstone.span()).collect();
    assert_eq!(undone, report.summaries());
    Ok(())
}

/// A pass makes the window smaller, or does not happen: as large as before is not smaller.
#[test]
fn a_pass_that_frees_nothing_is_refused() -> Outcome {
    let mut window = filled()?;
    let freed = with_pass(&mut window, |pass| {
        let preview = pass.preview(&pass.parse(&Answer::prune(["s3"]))?)?;
        Ok::<_, Box<dyn std::error::Error>>(usize::try_from(preview.before - preview.after)?)
    })??;
    let says = |length: usize| Answer::prune(["s3"]).with_rationale("r".repeat(length));
    let before = (texts(&window), window.utilization());
    let refused = with_pass(&mut window, |pass| {
        let proposal = pass.parse(&says(freed))?;
        Ok::<_, ProposalError>(pass.apply(proposal).wait())
    })??;
    assert!(matches!(refused, Err(ApplyError::NotSmaller { before, after }) if before == after), "{refused:?}");
    assert_eq!((texts(&window), window.utilization()), before);
    let report = pruned(&mut filled()?, &says(freed - 1))?;
    assert_eq!(report.pass().before - report.pass().after, 1);
    Ok(())
}

/// What comes back is a change: a proposal made before it is outdated.
#[test]
fn a_restored_span_outdates_a_proposal() -> Outcome {
    let mut window = filled()?;
    pruned(&mut window, &Answer::prune(["s3"]))?;
    let proposal = with_pass(&mut window, |pass| pass.parse(&Answer::prune(["s4"])))??;
    window.lanes().work.restore(id(3)).wait()?;
    let refused = with_pass(&mut window, |pass| pass.apply(proposal).wait().err())?;
    assert!(matches!(refused, Some(ApplyError::Outdated)), "{refused:?}");
    Ok(())
}

/// R11: models that take nothing are expected to take little, and asked again all the same.
#[test]
fn what_models_decline_is_not_promised_again() -> Outcome {
    let mut window = window(limits())?;
    for _ in 0..8 {
        window.lanes().work.push("m".repeat(2_500))?;
    }
    for expected in [500, 250, 125, 125] {
        with_pass(&mut window, |pass| pass.parse(&Answer::prune(Vec::<String>::new())))??;
        assert_eq!(window.prices().uptake, expected);
    }
    Ok(())
}

/// What a model reads of a candidate: its id, lane, size, how much came after it, and how it begins, on one line.
#[test]
fn a_line_of_the_index_says_what_it_must() -> Outcome {
    let mut window = filled()?;
    let text = with_pass(&mut window, |pass| {
        let ages: Vec<_> = pass.index().offers().iter().map(keepspan::Offer::age).collect();
        assert_eq!(ages, [4_600, 3_600, 2_600, 1_600, 600]);
        pass.index().to_string()
    })?;
    assert_eq!(text.lines().count(), 5);
    assert_eq!(
        text.lines().next(),
        Some(format!("s3 work 1000 tokens, 4600 ago: read file 0 {}", "x".repeat(33)).as_str())
    );
    Ok(())
}
