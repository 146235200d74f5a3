//! Faults that users of other agents reported of compaction itself: budgets, loops, passes and what they cost.

use keepspan::{
    Advice, ApplyError, BudgetError, CachePrice, Content, CounterError, Episode, FallBackError, FellBack, Limits,
    NewSpan, OldestFirst, OneByteAToken, OpenError, Outcome as Passed, ProposalError, PushError, Refused, Report,
    Shown, SpanId, SummarizeError, TokenCount, TokenCounter, Window,
    gate::Held,
    store::MemoryStore,
    tool::{Answer, AnswerError, OpenAiChat},
};
use keepspan_tests::{Agent, Fault, Faulty, memory};
use proptest::prelude::*;
use serde_json::json;

type Memory = std::sync::Arc<MemoryStore>;
type Outcome = Result<(), Box<dyn std::error::Error>>;
type Windowed = Window<Agent, Memory>;

/// One token a byte, so that sizes are what the report says.
fn window(limits: impl Into<Limits>) -> Result<Windowed, OpenError> {
    Window::open_with(memory(), Episode::new("e", "p").budget(limits), OneByteAToken)
}

fn text(tokens: usize) -> String {
    "x".repeat(tokens)
}

fn ids(spans: impl IntoIterator<Item = SpanId>) -> Vec<String> {
    spans.into_iter().map(|span| span.to_string()).collect()
}

fn refused(window: &mut Windowed) -> Result<Refused, Box<dyn std::error::Error>> {
    Ok(window.lanes().externalize().wait()?.admit().err().ok_or("it was admitted")?.reason().clone())
}

fn fall_back(window: &mut Windowed) -> Result<FellBack, Box<dyn std::error::Error>> {
    let refusal = window.lanes().externalize().wait()?.admit().err().ok_or("it was admitted")?;
    Ok(refusal.fall_back(OldestFirst).wait()?)
}

/// Parses an answer and applies it.
fn apply(window: &mut Windowed, answer: &Answer) -> Result<Passed, Box<dyn std::error::Error>> {
    let pass = window.lanes().externalize().wait()?.admit().map_err(|refusal| refusal.to_string())?;
    let proposal = pass.parse(answer)?;
    Ok(pass.apply(proposal).wait()?)
}

fn pruned(passed: Passed) -> Result<Report, String> {
    match passed {
        Passed::Pruned(report) => Ok(report),
        Passed::Unchanged => Err("it changed nothing".into()),
    }
}

fn shown(window: &Windowed) -> Vec<(Shown, Content)> {
    window.render().iter().map(|message| (message.shown(), message.content().clone())).collect()
}

// Limits that cannot work.

/// Fixed overhead above the trigger: compaction ran from the first turn and never ended. Reserves as large as the window,
/// tails as large as the budget, prefixes larger than the memory: each was accepted, then clamped.
#[test]
fn impossible_limits_are_refused_when_the_window_opens() -> Outcome {
    use BudgetError::{AllFixed, AllReserved, Empty, FixedReachesTrigger, KeepReachesTrigger, TriggerAboveLimit};
    let cases = [
        (Limits::of(32_768).fixed(29_000).trigger(27_852), FixedReachesTrigger { fixed: 29_000, trigger: 27_852 }),
        (Limits::of(131_072).reserve(131_072), AllReserved { reserve: 131_072, budget: 131_072 }),
        (Limits::of(8_000).reserve(8_000), AllReserved { reserve: 8_000, budget: 8_000 }),
        (Limits::of(100).reserve(200), AllReserved { reserve: 200, budget: 100 }),
        (Limits::of(0), Empty),
        (Limits::of(8_000).keep(8_000), KeepReachesTrigger { keep: 8_000, fixed: 0, trigger: 6_666 }),
        (Limits::of(3_000).fixed(3_200), AllFixed { fixed: 3_200, limit: 3_000 }),
        // Four fifths of the window, with the output's share forgotten.
        (Limits::of(200_000).reserve(64_000).trigger(160_000), TriggerAboveLimit { trigger: 160_000, limit: 136_000 }),
    ];
    for (limits, expected) in cases {
        let refused = window(limits).err();
        assert!(matches!(&refused, Some(OpenError::Budget(error)) if *error == expected), "{refused:?}");
    }
    Ok(())
}

proptest! {
    /// Unchecked subtractions wrapped; saturating ones always triggered and never accepted.
    #[test]
    fn no_limits_wrap(
        tokens: u64, fixed: u64, trigger: u64, index: u64, rationale: u64, margin: u64, reserve: u64, keep: u64, small: u8,
    ) {
        let cut = |tokens: u64| tokens >> (small % 64);
        let limits = Limits::of(cut(tokens)).fixed(cut(fixed)).trigger(cut(trigger)).index(cut(index));
        let limits = limits.rationale(cut(rationale)).margin(cut(margin)).reserve(cut(reserve)).keep(cut(keep));
        if let Ok(budget) = keepspan::Budget::new(limits) {
            prop_assert!(budget.fixed() < budget.trigger() && budget.trigger() <= budget.limit());
            prop_assert!(budget.limit() - budget.trigger() >= budget.decision());
            prop_assert!(budget.keep() < budget.trigger() - budget.fixed());
            prop_assert_eq!(budget.limit() + budget.reserve(), budget.tokens());
        }
    }
}

/// The output's share was no longer subtracted, and the model ran out before compaction fired.
#[test]
fn the_output_s_share_counts_against_the_window() -> Outcome {
    let mut window = window(Limits::of(200_000).reserve(64_000))?;
    let mut advice = Vec::new();
    for _ in 0..14 {
        window.lanes().rules.push(text(10_000))?;
        advice.push(matches!(window.lanes().advice(), Advice::FallBack(_)));
    }
    // Due from five sixths of 136,000 on.
    assert_eq!(advice.iter().filter(|due| **due).count(), 3);
    assert_eq!(refused(&mut window)?, Refused::OverBudget { utilization: 140_000, limit: 136_000 });
    Ok(())
}

// Counts.

/// Dense text was counted by a ratio for prose, a quarter of what it is.
#[test]
fn a_guess_does_not_let_dense_text_past_the_gate() -> Outcome {
    let base64 = "QUJD".repeat(261_529) + "QQ";
    assert_eq!(base64.len(), 1_046_118);
    let mut guessed = Window::<Agent, _>::open(memory(), Episode::new("e", "p").budget(1_000_000))?;
    guessed.lanes().work.push(NewSpan::tool("read", base64.as_str()))?;
    assert!(matches!(refused(&mut guessed)?, Refused::Estimated { .. }));
    let mut bounded = window(1_000_000)?;
    let refused = bounded.lanes().work.push(NewSpan::tool("read", base64));
    assert!(matches!(refused, Err(PushError::LargerThanBudget { tokens: 1_046_118, budget: 1_000_000, .. })));
    Ok(())
}

/// Text as bytes; an image at what its backend bills.
struct Images(u32);

impl TokenCounter for Images {
    fn text(&self, text: &str) -> Result<TokenCount, CounterError> {
        OneByteAToken.text(text)
    }

    fn bytes(&self, _: &[u8]) -> Result<TokenCount, CounterError> {
        Ok(TokenCount::exact(self.0))
    }
}

/// One screenshot counted as text was compacted away at once; 45 counted flat were never compacted at all.
#[test]
fn images_weigh_what_their_counter_says() -> Outcome {
    let image = vec![0xff_u8; 200_000];
    let open = |counter| Window::<Agent, _>::open_with(memory(), Episode::new("e", "p").budget(200_000), counter);
    let mut window = open(Images(1_200))?;
    window.lanes().rules.push(NewSpan::human("what is this? Look."))?;
    window.lanes().rules.push(NewSpan::human(image.clone()))?;
    assert!(matches!(window.lanes().advice(), Advice::GoOn(Refused::NothingToPrune { .. })));
    assert_eq!(shown(&window)[1].1.as_bytes(), image);

    let mut due = Vec::new();
    for counter in [Images(1_200), Images(101_523)] {
        let mut window = open(counter)?;
        let mut pushed = 0;
        while pushed < 45 && !matches!(window.lanes().advice(), Advice::Prune(_) | Advice::FallBack(_)) {
            window.lanes().work.push(NewSpan::tool("screenshot", image.clone()))?;
            pushed += 1;
        }
        due.push((pushed, window.utilization()));
    }
    assert_eq!(due, [(45, 54_000), (2, 203_046)]);
    Ok(())
}

/// A quarter of the characters, whatever the script: 24 of them counted as 6 tokens.
#[test]
fn characters_of_three_bytes_are_not_a_quarter_of_a_token() -> Outcome {
    let mut window = Window::<Agent, _>::open(memory(), Episode::new("e", "p").budget(15))?;
    let refused = window.lanes().work.push("検証済みの手順を本番環境で実行しないでください。");
    assert!(matches!(refused, Err(PushError::LargerThanBudget { tokens: 21, budget: 15, .. })), "{refused:?}");
    Ok(())
}

// Loops.

/// The same failed compaction, again and again: asking again says how often, and that nothing changed.
#[test]
fn protected_text_over_the_trigger_is_no_progress_and_not_a_success() -> Outcome {
    let mut window = window(Limits::of(6_000).trigger(4_500))?;
    for _ in 0..5 {
        window.lanes().limits.push(text(1_000))?;
    }
    let held = Held { kept: 5_000, ..Held::default() };
    assert_eq!(fall_back(&mut window)?, FellBack::Unchanged { held: held.clone() });
    let reason = Refused::NothingToPrune { headroom: 1_000, held: held.clone() };
    assert_eq!(fall_back(&mut window)?, FellBack::NoProgress { refused: reason, held });
    Ok(())
}

/// A cap on attempts cut off eleven separate incidents, each of which was solved.
#[test]
fn progress_is_never_counted_as_a_loop() -> Outcome {
    let mut window = window(Limits::of(10_000))?;
    for incident in 0..11 {
        while window.utilization() <= 10_000 {
            window.lanes().work.push(NewSpan::tool("read", text(900)))?;
        }
        let refusal = window.lanes().externalize().wait()?.admit().err().ok_or("over budget")?;
        assert_eq!(refusal.times(), 1, "incident {incident}");
        assert!(matches!(refusal.fall_back(OldestFirst).wait()?, FellBack::Freed(_)), "incident {incident}");
    }
    Ok(())
}

/// "Condensing" that returned more than it took: 404 tokens became 17,133.
#[test]
fn a_summary_that_is_not_smaller_is_not_applied() -> Outcome {
    let mut window = window(Limits::of(20_000).index(600).rationale(100).margin(150))?;
    let lanes = window.lanes();
    let small = [lanes.work.push(text(200))?, lanes.work.push(text(200))?];
    for _ in 0..3 {
        lanes.work.push(text(5_000))?;
    }
    let before = shown(&window);
    let refused = apply(&mut window, &Answer::prune([""; 0]).summarize(ids(small), text(900)));
    let refused = refused.err().ok_or("it was applied")?;
    let Some(ApplyError::Summary(SummarizeError::NotSmaller { summary, sources: 400 })) = refused.downcast_ref() else {
        return Err(refused);
    };
    assert_eq!(*summary, 900 + "[s6: summary of s1, s2; recall any by id]\n".len() as u64);
    assert_eq!(shown(&window), before);
    Ok(())
}

/// The rationale counts as well: a pass whose reasons outweigh what leaves makes the window larger.
#[test]
fn a_pass_that_explains_more_than_it_frees_is_not_applied() -> Outcome {
    let mut window = window(Limits::of(20_000).index(600).rationale(100).margin(150))?;
    for _ in 0..3 {
        window.lanes().work.push(text(1_000))?;
    }
    let refused = apply(&mut window, &Answer::prune(["s1"]).with_rationale(text(1_000)));
    let refused = refused.err().ok_or("it was applied")?;
    assert!(matches!(refused.downcast_ref(), Some(ApplyError::NotSmaller { before: 3_000, .. })), "{refused}");
    assert_eq!(window.utilization(), 3_000);
    Ok(())
}

/// A budget of ten with a summary of four thousand: observations were charged, summaries were not.
#[test]
fn summaries_and_rationales_are_charged_like_any_text() -> Outcome {
    let mut window = window(Limits::of(20_000).index(600).rationale(100).margin(150))?;
    let work = [window.lanes().work.push(text(5_000))?, window.lanes().work.push(text(3_000))?];
    let answer = Answer::prune([""; 0]).summarize(ids(work), text(4_000)).with_rationale(text(70));
    let report = pruned(apply(&mut window, &answer)?)?;
    let header = "[s3: summary of s1, s2; recall any by id]\n".len() as u64;
    assert_eq!(window.utilization(), 4_000 + header + 70);
    assert_eq!((report.pass().pointers, report.pass().kept), (4_000 + header, 70));
    assert_eq!(report.pass().after, window.utilization());
    Ok(())
}

/// A hidden cap of twenty messages cut a history at an eighth of its token budget.
#[test]
fn nothing_but_the_token_budget_makes_anything_leave() -> Outcome {
    let mut window = window(100_000)?;
    for _ in 0..21 {
        window.lanes().work.push(text(580))?;
        assert!(!matches!(window.lanes().advice(), Advice::Prune(_) | Advice::FallBack(_)));
    }
    assert_eq!((window.render().len(), window.utilization()), (21, 12_180));
    Ok(())
}

// Compaction that cannot run when it is needed.

/// At the limit the compaction itself was too long to run, and clearing was all that was left.
#[test]
fn a_full_window_is_freed_without_a_model() -> Outcome {
    let store = memory();
    let limits = Limits::of(10_000).trigger(8_000).index(1_000).rationale(500);
    let mut window = Window::<Agent, _>::open_with(store, Episode::new("e", "p").budget(limits), OneByteAToken)?;
    let lanes = window.lanes();
    lanes.schema.push(text(500))?;
    lanes.target.push(text(250))?;
    lanes.failed.push(text(250))?;
    for _ in 0..9 {
        lanes.work.push(text(1_000))?;
    }
    assert!(matches!(refused(&mut window)?, Refused::DecisionInBand { headroom: 0, index: 1_000, rationale: 500 }));
    let FellBack::Freed(report) = fall_back(&mut window)? else { return Err("nothing was freed".into()) };
    assert_eq!(window.tombstones()?, report.tombstones(), "in the store before it left");
    assert!(report.tombstones().iter().all(|tombstone| tombstone.lane() == "work"));
    assert!(window.utilization() < 8_000);
    Ok(())
}

/// No tool output to remove, yet the same prompt was sent five times, and the error then blamed tool output.
#[test]
fn what_cannot_be_helped_is_said_at_once_with_its_cause() -> Outcome {
    let mut window = window(Limits::of(10_000).fixed(1_000))?;
    for _ in 0..6 {
        window.lanes().rules.push(NewSpan::human(text(2_000)))?;
    }
    let error = fall_back(&mut window).err().ok_or("it cannot fit")?;
    let Some(FallBackError::Unfittable { needed, budget, fixed, held }) = error.downcast_ref() else {
        return Err(error);
    };
    assert_eq!((*needed, *budget, *fixed), (13_000, 10_000, 1_000));
    assert_eq!(*held, Held { kept: 12_000, ..Held::default() });
    Ok(())
}

/// Nothing older is left, and the newest result alone does not fit beside what is fixed.
#[test]
fn the_newest_result_may_leave_unless_it_is_kept() -> Outcome {
    for (keep, leaves) in [(0, true), (10_000, false)] {
        let mut window = window(Limits::of(200_000).fixed(4_000).keep(keep))?;
        window.lanes().rules.push(text(6_000))?;
        let result = window.lanes().work.push(NewSpan::tool("read", text(195_000)))?;
        let freed = fall_back(&mut window);
        if leaves {
            assert!(matches!(freed?, FellBack::Freed(_)));
            assert_eq!(window.render()[1].shown(), Shown::Pointer(result, result));
        } else {
            let error = freed.err().ok_or("it is kept")?;
            let Some(FallBackError::Unfittable { needed: 205_000, held, .. }) = error.downcast_ref() else {
                return Err(error);
            };
            assert_eq!(*held, Held { kept: 6_000, recent: 195_000, ..Held::default() });
        }
        assert_eq!(window.recall(result).wait()?.content().as_bytes().len(), 195_000);
    }
    Ok(())
}

fn chat(finish: &str, content: Option<&str>, arguments: Option<String>) -> serde_json::Value {
    let call = |arguments| json!([{ "id": "c", "type": "function", "function": { "name": "summarize_context", "arguments": arguments } }]);
    json!({ "choices": [{ "finish_reason": finish, "message": {
        "role": "assistant", "content": content, "tool_calls": arguments.map_or(json!([]), call),
    } }] })
}

fn summarizing(spans: &[String], summary: &str) -> Option<String> {
    Some(json!({ "spans": spans, "summary": summary }).to_string())
}

/// An error's text, an empty one, half of one, one that only reasons: each replaced a history.
#[test]
fn no_unfinished_answer_of_a_provider_becomes_a_summary() -> Outcome {
    let mut window = window(Limits::of(20_000).index(600).rationale(100).margin(150))?;
    let mut spans = Vec::new();
    for _ in 0..5 {
        spans.push(window.lanes().work.push(text(1_000))?.to_string());
    }
    let before = shown(&window);
    let answers = [
        (chat("length", None, summarizing(&spans, "the agent then")), "cut off"),
        (chat("length", None, Some("{\"spans\": [\"s1\"], \"summ".into())), "cut off"),
        (chat("content_filter", Some("I cannot"), None), "refused"),
        (chat("stop", Some("The conversation is empty."), None), "calls neither"),
        (chat("tool_calls", None, Some("{\"spans\": [\"s1\"]}".into())), "`summary` is missing"),
        (chat("tool_calls", None, summarizing(&spans, " \n")), "summary is empty"),
        (json!({ "error": { "message": "Rate limit reached" } }), "Rate limit reached"),
    ];
    for (answer, why) in answers {
        let pass = window.lanes().externalize().wait()?.admit().map_err(|refusal| refusal.to_string())?;
        let refused = match Answer::read(OpenAiChat, &answer) {
            Err(error) => error.to_string(),
            Ok(answer) => pass.parse(&answer).err().ok_or("it became a proposal")?.to_string(),
        };
        assert!(refused.contains(why), "{refused}");
        assert_eq!(shown(&window), before, "{answer}");
    }
    assert!(window.tombstones()?.is_empty());
    // The whole one is taken.
    let answer = Answer::read(OpenAiChat, &chat("tool_calls", None, summarizing(&spans, "five reads of nothing")))?;
    let report = pruned(apply(&mut window, &answer)?)?;
    assert_eq!(report.summaries().len(), 1);
    Ok(())
}

/// "The conversation is empty", after two and a half million tokens: the summary names what it stands for all the same.
#[test]
fn a_summary_without_content_still_leads_to_its_sources() -> Outcome {
    let mut window = window(Limits::of(50_000).index(2_000).rationale(100).margin(150))?;
    let mut sources = Vec::new();
    for n in 0..20 {
        sources.push(window.lanes().work.push(format!("{n} {}", text(1_000)))?);
    }
    let answer = Answer::prune([""; 0]).summarize(ids(sources.clone()), "The conversation is empty.");
    let report = pruned(apply(&mut window, &answer)?)?;
    let summary = report.summaries().first().ok_or("one summary")?;
    assert_eq!(window.derivation(*summary).ok_or("it has sources")?.sources(), sources);
    let line = window.render()[0].content().as_text().map(str::to_owned).ok_or("text")?;
    assert!(ids(sources.clone()).iter().all(|id| line.contains(id.as_str())), "{line}");
    for (n, source) in sources.into_iter().enumerate() {
        let recalled = window.recall(source).wait()?;
        assert!(recalled.content().as_text().is_some_and(|text| text.starts_with(&format!("{n} "))));
    }
    Ok(())
}

/// The boundary was written before the summary existed; content was stored for a summary that then failed.
#[test]
fn a_pass_that_fails_in_the_store_leaves_no_boundary_behind() -> Outcome {
    let store = std::sync::Arc::new(Faulty::default());
    let limits = Limits::of(20_000).index(600).rationale(100).margin(150);
    let mut window =
        Window::<Agent, _>::open_with(store.clone(), Episode::new("e", "p").budget(limits), OneByteAToken)?;
    for _ in 0..5 {
        window.lanes().work.push(text(1_000))?;
    }
    drop(window.lanes().externalize().wait()?);
    let answer = Answer::prune(["s1"]).summarize(["s2", "s3"], "two reads");
    // The summary's bytes, their reading back, then the records: each fails once.
    for nth in 1..=3 {
        let pass = window.lanes().externalize().wait()?.admit().map_err(|refusal| refusal.to_string())?;
        let proposal = pass.parse(&answer)?;
        store.arm(nth, Fault::Fails);
        assert!(matches!(pass.apply(proposal).wait(), Err(ApplyError::Commit(_))), "call {nth}");
        assert_eq!((window.utilization(), window.render().len()), (5_000, 5), "call {nth}");
        assert!(window.tombstones()?.is_empty(), "call {nth}");
        assert_eq!(window.accounting().passes, 0);
    }
    let pass = window.lanes().externalize().wait()?.admit().map_err(|refusal| refusal.to_string())?;
    let proposal = pass.parse(&answer)?;
    assert!(matches!(pass.apply(proposal).wait()?, Passed::Pruned(_)));
    Ok(())
}

/// Every summary model failed, and switching the mode failed with it.
#[test]
fn what_needs_no_space_does_not_need_a_summary() -> Outcome {
    let mut window = window(Limits::of(20_000).index(600).rationale(100).margin(150))?;
    for _ in 0..9 {
        window.lanes().work.push(text(1_000))?;
    }
    let pass = window.lanes().externalize().wait()?.admit().map_err(|refusal| refusal.to_string())?;
    assert!(pass.parse(&Answer::prune(["s1"]).summarize(["s2"], "")).is_err());
    drop(pass);
    window.change_policy("ask mode").wait()?;
    assert_eq!((window.policy().name(), window.render().len()), ("ask mode", 9));
    Ok(())
}

/// The summarizer was fed what is meant for display, cut and without arguments.
#[test]
fn only_the_index_is_an_excerpt() -> Outcome {
    let mut window = window(Limits::of(20_000).index(600).rationale(100).margin(150))?;
    let (call, result) = (format!("call {}", text(2_000)), format!("result {}", text(5_000)));
    window.lanes().work.push(NewSpan::model(call.as_str()).calls(["c"]))?;
    window.lanes().work.push(NewSpan::tool("run", result.as_str()).answers("c"))?;
    let pass = window.lanes().externalize().wait()?.admit().map_err(|refusal| refusal.to_string())?;
    let offer = &pass.index().offers()[0];
    assert_eq!((offer.line().chars().count(), offer.tokens()), (40, 7_012));
    drop(pass);
    let whole: Vec<_> = shown(&window).into_iter().map(|(_, content)| content).collect();
    assert_eq!(whole, [Content::from(call), Content::from(result)]);
    Ok(())
}

/// One call had to carry every old exchange: when it overflowed, nothing was done and the backlog grew.
#[test]
fn what_was_done_in_groups_stays_done_when_one_fails() -> Outcome {
    let mut window = window(Limits::of(240_000).index(4_000).rationale(400).margin(600))?;
    for n in 0..60 {
        window.lanes().work.push(NewSpan::model(text(1_000)).calls([format!("call_{n}")]))?;
        window.lanes().work.push(NewSpan::tool("run", text(2_000)).answers(format!("call_{n}")))?;
    }
    for group in 0..3 {
        let pass = window.lanes().externalize().wait()?.admit().map_err(|refusal| refusal.to_string())?;
        let offered: Vec<_> = pass.index().offers().iter().take(20).map(|offer| offer.span().to_string()).collect();
        assert_eq!(offered.len(), 20);
        let finish = if group == 2 { "length" } else { "tool_calls" };
        match Answer::read(OpenAiChat, &chat(finish, None, summarizing(&offered, "twenty runs"))) {
            Ok(answer) => {
                let proposal = pass.parse(&answer)?;
                let report = pruned(pass.apply(proposal).wait()?)?;
                assert_eq!(report.tombstones().len(), 40, "whole exchanges");
            }
            Err(error) => assert!(group == 2 && matches!(error, AnswerError::Truncated { .. })),
        }
    }
    assert_eq!(window.render().len(), 2 + 40);
    Ok(())
}

/// Messages kept by one compaction were never taken by the next one, and a large one among them triggered it each turn.
#[test]
fn what_one_pass_keeps_the_next_one_offers() -> Outcome {
    let mut window = window(Limits::of(60_000).keep(20_000).index(2_000).rationale(100).margin(150))?;
    for _ in 0..10 {
        window.lanes().work.push(text(500))?;
    }
    let big = window.lanes().work.push(text(37_000))?;
    let offers = |window: &mut Windowed| -> Result<Vec<SpanId>, Box<dyn std::error::Error>> {
        let pass = window.lanes().externalize().wait()?.admit().map_err(|refusal| refusal.to_string())?;
        Ok(pass.index().offers().iter().map(|offer| offer.span()).collect())
    };
    let first = offers(&mut window)?;
    assert!(first.len() == 10 && !first.contains(&big));
    pruned(apply(&mut window, &Answer::prune(ids(first)))?)?;
    for _ in 0..14 {
        window.lanes().work.push(text(1_500))?;
    }
    assert!(offers(&mut window)?.contains(&big));
    pruned(apply(&mut window, &Answer::prune(ids([big])))?)?;
    // Each span is either shown or under the one pointer.
    let shown: Vec<_> = window.render().iter().map(|message| message.shown()).collect();
    assert!(matches!(shown[0], Shown::Pointer(first, last) if first.number() == 1 && last == big), "{shown:?}");
    assert_eq!(shown.len(), 1 + 14);
    Ok(())
}

/// Split points by counting messages cut a pair in two as soon as the count was odd.
#[test]
fn no_number_of_messages_makes_a_fallback_split_an_exchange() -> Outcome {
    for length in 0..40_usize {
        let mut window = window(Limits::of(100_000).trigger(100).index(1).rationale(1).margin(1).fixed(1))?;
        let lanes = window.lanes();
        lanes.rules.push("q")?;
        let mut pairs = Vec::new();
        for n in 0..length {
            let call = lanes.work.push(NewSpan::model(text(400)).calls(["call_0"]))?;
            pairs.push((call, lanes.work.push(NewSpan::tool("run", format!("{n}{}", text(300))).answers("call_0"))?));
        }
        if length % 2 == 1 {
            lanes.work.push(NewSpan::model(text(400)).calls(["call_0"]))?;
        }
        if length == 0 {
            continue;
        }
        let FellBack::Freed(report) = fall_back(&mut window)? else { return Err(format!("{length}").into()) };
        let left: Vec<_> = report.tombstones().iter().map(|tombstone| tombstone.span()).collect();
        for (call, result) in pairs {
            assert!(left.contains(&call) && left.contains(&result), "{length}: all that is settled");
        }
        assert_eq!(left.len(), length * 2, "and nothing that is not");
    }
    Ok(())
}

/// A source added to a second part of a staged summary: each pass compounded it.
#[test]
fn no_source_is_in_two_parts_of_an_answer() -> Outcome {
    let mut window = window(Limits::of(20_000).index(600).rationale(100).margin(150))?;
    for _ in 0..4 {
        window.lanes().work.push(text(1_000))?;
    }
    let twice = Answer::prune([""; 0]).summarize(["s1", "s2"], "one").summarize(["s2", "s3"], "two");
    let refused = apply(&mut window, &twice).err().ok_or("it was applied")?;
    assert!(matches!(refused.downcast_ref(), Some(ProposalError::Overlap { span }) if span.number() == 2), "{refused}");
    assert_eq!(window.utilization(), 4_000);
    Ok(())
}

// The price of a decision.

/// Five small evictions at a quarter of the budget billed 137,000 tokens again to save a few thousand each.
#[test]
fn a_pass_far_from_the_limit_has_to_pay_for_the_cache_it_loses() -> Outcome {
    let mut window = window(163_000)?;
    window.set_cache_price(Some(CachePrice::new(10, 100, 6)?));
    window.lanes().rules.push(text(1_000))?;
    window.lanes().work.push(NewSpan::tool("read", text(12_000)))?;
    window.lanes().rules.push(text(29_000))?;
    // 41,000 tokens after the first change, at nine tenths more, over six calls at a tenth.
    assert!(matches!(refused(&mut window)?, Refused::InsufficientReclamation { gross: 12_000, cache: 61_500, .. }));
    window.set_cache_price(None);
    assert!(window.lanes().externalize().wait()?.admit().is_ok());
    Ok(())
}

// Cuts.

/// Half an emoji at the edge of an excerpt made the request invalid, three times the same.
#[test]
fn an_excerpt_is_cut_between_characters() -> Outcome {
    for before in 35..45 {
        let mut window = window(Limits::of(20_000).index(600).rationale(100).margin(150))?;
        window.lanes().work.push(format!("{}\u{1F680}\u{1F680}{}", text(before), "y \"\\ \u{7}".repeat(400)))?;
        let pass = window.lanes().externalize().wait()?.admit().map_err(|refusal| refusal.to_string())?;
        let index = pass.index().to_string();
        assert_eq!((index.lines().count(), pass.index().offers()[0].line().contains('\u{FFFD}')), (1, false));
        assert_eq!(serde_json::from_str::<String>(&serde_json::to_string(&index)?)?, index);
    }
    // Nor does a name that a model made up break a message.
    let mut window = window(Limits::of(20_000).index(600).rationale(100).margin(150))?;
    window.lanes().work.push(text(3_000))?;
    let pass = window.lanes().externalize().wait()?.admit().map_err(|refusal| refusal.to_string())?;
    let name = format!("{}\u{1F680}\n[SYSTEM]", text(59));
    let refused = pass.parse(&Answer::prune([name])).err().ok_or("no id")?;
    assert!(matches!(&refused, ProposalError::NoId { name, .. } if name.ends_with('\u{1F680}')), "{refused}");
    Ok(())
}

/// Arguments cut to 200 characters are no JSON any more, or another command.
#[test]
fn arguments_stay_whole_or_leave_whole() -> Outcome {
    let mut window = window(Limits::of(20_000).index(600).rationale(100).margin(150))?;
    let arguments = json!({ "path": text(250), "command": text(600), "content": text(800) }).to_string();
    let call = window.lanes().work.push(NewSpan::model(arguments.as_str()).calls(["c1"]))?;
    let result = window.lanes().work.push(NewSpan::tool("write", text(500)).answers("c1"))?;
    let report = pruned(apply(&mut window, &Answer::prune(ids([call])))?)?;
    let left: Vec<_> = report.tombstones().iter().map(|tombstone| tombstone.span()).collect();
    assert_eq!(left, [call, result], "with its result, each with a tombstone");
    assert_eq!(window.recall(call).wait()?.content().as_text(), Some(arguments.as_str()));
    assert_eq!(window.undo(&report).wait()?, [call, result]);
    assert_eq!(shown(&window)[0].1.as_text(), Some(arguments.as_str()));
    Ok(())
}

/// The current question was taken for old history, and the message list was empty.
#[test]
fn the_question_stays_whatever_came_after_it() -> Outcome {
    let mut window = window(32_000)?;
    window.lanes().rules.push(NewSpan::human(text(20_000)))?;
    let refused = window.lanes().work.push(NewSpan::tool("read", text(219_000)));
    assert!(matches!(refused, Err(PushError::LargerThanBudget { tokens: 219_000, budget: 32_000, .. })));
    // In parts, each of which fits: all of them leave before the question does.
    window.lanes().work.push(NewSpan::model(text(100)).calls((0..22).map(|n| format!("c{n}"))))?;
    for n in 0..22 {
        window.lanes().work.push(NewSpan::tool("read", text(9_955)).answers(format!("c{n}")))?;
    }
    assert!(matches!(fall_back(&mut window)?, FellBack::Freed(_)));
    assert!(window.utilization() < 32_000);
    assert!(matches!(window.render()[0].shown(), Shown::Span(span) if span.number() == 1));
    Ok(())
}
