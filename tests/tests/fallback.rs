//! Without a model: each strategy frees as much as is needed, in the fixed order, or says why it cannot (rule R14).

use keepspan::{
    Accounting, CommitError, Content, CounterError, Episode, EpisodeId, FallBackError, Fallback, FellBack, Finish,
    FixedTemplate, LargestToolOutput, Limits, ModelAnswer, NewSpan, OldestFirst, OneByteAToken, PruneEvent, Report,
    Shown, SpanId, SupersededReads, TokenCount, TokenCounter, Window,
    audit::History,
    gate::Held,
    store::{MemoryStore, Store as _},
};
use keepspan_tests::{Agent, Fault, Faulty, memory};
use proptest::prelude::*;

type Memory = std::sync::Arc<MemoryStore>;
type Outcome = Result<(), Box<dyn std::error::Error>>;
type Windowed = Window<Agent, Memory>;
type Freed = Result<FellBack, Box<dyn std::error::Error>>;
type Run = fn(&mut Windowed) -> Freed;

const STRATEGIES: [(&str, Run); 4] = [
    (OldestFirst::NAME, fall_back::<OldestFirst>),
    (LargestToolOutput::NAME, fall_back::<LargestToolOutput>),
    (SupersededReads::NAME, fall_back::<SupersededReads>),
    (FixedTemplate::NAME, fall_back::<FixedTemplate>),
];

/// Asks the gate, which has to refuse, and falls back.
fn fall_back<B: Fallback + Default>(window: &mut Windowed) -> Freed {
    let refusal = window.lanes().externalize().wait()?.admit().err().ok_or("the gate let a model decide")?;
    Ok(refusal.fall_back(B::default()).wait()?)
}

fn report(fell_back: FellBack) -> Result<Report, String> {
    match fell_back {
        FellBack::Freed(report) => Ok(report),
        other => Err(format!("{other:?}")),
    }
}

/// With an index that no line fits, so that the gate refuses whatever there is.
fn limits(tokens: u64, trigger: u64) -> Limits {
    Limits::of(tokens).trigger(trigger).index(1).rationale(1).margin(1)
}

fn window(store: Memory, limits: Limits) -> Result<Windowed, keepspan::OpenError> {
    Window::open_with(store, Episode::new("e", "p").budget(limits), OneByteAToken)
}

fn id(number: u64) -> SpanId {
    SpanId::parse(&format!("s{number}")).unwrap_or_else(|| unreachable!("a number above 0"))
}

fn ids(numbers: &[u64]) -> Vec<SpanId> {
    numbers.iter().copied().map(id).collect()
}

fn left(report: &Report) -> Vec<SpanId> {
    let mut left: Vec<_> = report.tombstones().iter().map(|tombstone| tombstone.span()).collect();
    left.sort_unstable();
    left
}

/// What a window shows: of each message what it is and its text.
fn shown(window: &Windowed) -> Vec<(Shown, Content)> {
    window.render().iter().map(|message| (message.shown(), message.content().clone())).collect()
}

fn rendered(window: &Windowed) -> u64 {
    window.render().iter().map(|message| u64::from(message.tokens())).sum()
}

/// What a summary of s3 says: 800 tokens with the line above it.
fn recap() -> Result<keepspan::SummaryText, keepspan::SummaryTextError> {
    keepspan::ModelAnswer::new(keepspan::Finish::Stop, "r".repeat(762)).try_into()
}

/// One of each class, 1,000 tokens each: s1 rule, s2 pinned, s4 work, s5 rationale, s6 schema, s7 failed, s8 a call
/// without its result, s9 the summary of s3, s10 work among the newest 1,000 tokens.
fn one_of_each(store: Memory, limits: Limits) -> Result<Windowed, Box<dyn std::error::Error>> {
    let mut window = window(store, limits.keep(1_000))?;
    let text = |letter: &str| letter.repeat(1_000);
    let lanes = window.lanes();
    lanes.rules.push(text("a"))?;
    lanes.limits.push(text("b"))?;
    let source = lanes.work.push(text("c"))?;
    lanes.work.push(text("d"))?;
    lanes.decisions.push(text("e"))?;
    lanes.schema.push(NewSpan::tool("describe_table", text("f")))?;
    lanes.failed.push(text("g"))?;
    lanes.work.push(NewSpan::model(text("h")).calls(["call_0"]))?;
    let lanes = lanes.externalize().wait()?;
    lanes.work.summarize(source, recap()?, &lanes.recap).wait()?;
    drop(lanes);
    window.lanes().work.push(text("i"))?;
    Ok(window)
}

const FULL: u64 = 8 * 1_000 + 800;

#[test]
fn classes_give_way_in_the_fixed_order_whatever_the_strategy() -> Outcome {
    // Limit, trigger, and what leaves.
    let steps: [(u64, u64, &[u64]); 7] = [
        (20_000, FULL, &[4]),
        (20_000, FULL - 800, &[4]),
        (20_000, FULL - 1_000, &[4, 5]),
        (20_000, FULL - 1_950, &[4, 5, 9]),
        // As far as it goes without protected text, which only the limit asks for.
        (FULL - 2_300, FULL - 4_000, &[4, 5, 9]),
        (FULL - 2_700, FULL - 4_000, &[4, 5, 6, 9]),
        (FULL - 3_700, FULL - 4_000, &[4, 5, 6, 7, 9]),
    ];
    for (name, run) in STRATEGIES {
        for (limit, trigger, expected) in steps {
            let mut window = one_of_each(memory(), limits(limit, trigger))?;
            assert_eq!(window.utilization(), FULL);
            let before = shown(&window);
            let report = report(run(&mut window)?)?;
            assert_eq!(left(&report), ids(expected), "{name}, limit {limit}, trigger {trigger}");
            assert_eq!(report.pass().after, window.utilization());
            assert_eq!(rendered(&window), window.utilization());
            assert!(window.utilization() <= limit);
            let texts = shown(&window);
            for kept in [1, 2, 8, 10].map(id) {
                let text = before.iter().find(|(shown, _)| *shown == Shown::Span(kept)).ok_or("it was there")?;
                assert!(texts.contains(text), "{name}: {kept} never leaves");
            }
            // Reported, and undone as a whole.
            assert_eq!(window.accounting().fallbacks, 1);
            assert_eq!(window.accounting().fallback_freed, FULL - report.pass().after);
            let last = window.accounting().events().last().cloned();
            assert!(matches!(last, Some(PruneEvent::FellBack { strategy, .. }) if strategy == name), "{last:?}");
            assert_eq!(window.undo(&report).wait()?, left(&report));
            assert_eq!((shown(&window), window.utilization()), (before, FULL));
        }
    }
    Ok(())
}

/// R14: the class comes before the age, here where the youngest class is the oldest text.
#[test]
fn a_class_gives_way_before_older_text_of_the_next() -> Outcome {
    for (trigger, expected) in [(2_800, &[4_u64][..]), (1_850, &[3, 4]), (850, &[2, 3, 4])] {
        let store = memory();
        let mut window = window(store.clone(), limits(20_000, trigger))?;
        window.lanes().work.push("c".repeat(1_000))?;
        let lanes = window.lanes().externalize().wait()?;
        lanes.work.summarize(id(1), recap()?, &lanes.recap).wait()?; // s2
        drop(lanes);
        window.lanes().decisions.push("e".repeat(1_000))?; // s3
        window.lanes().work.push("d".repeat(1_000))?; // s4
        let report = report(fall_back::<OldestFirst>(&mut window)?)?;
        assert_eq!(left(&report), ids(expected), "trigger {trigger}");
        let history = History::read(&store, &EpisodeId::new("e"))?;
        let accounting = history.accounting();
        assert_eq!((accounting.fallbacks, accounting.passes), (1, 0), "as it is recorded");
    }
    Ok(())
}

/// Everything that may leave has left in thought: what is still needed is exact, and nothing happened.
#[test]
fn what_cannot_fit_is_told_exactly_and_nothing_changes() -> Outcome {
    for (name, run) in STRATEGIES {
        // What is left when all has gone, found by going all the way.
        let mut all = one_of_each(memory(), limits(FULL - 3_700, FULL - 4_000))?;
        let least = report(run(&mut all)?)?.pass().after;

        let store = memory();
        let mut window = one_of_each(store.clone(), limits(least - 1, 2_000))?;
        drop(window.lanes().externalize().wait()?.admit());
        let state = |window: &Windowed| -> Result<_, Box<dyn std::error::Error>> {
            let Accounting { fallbacks, fallback_freed, .. } = window.accounting();
            let events: Vec<_> = window.accounting().events().cloned().collect();
            Ok((shown(window), store.read(&EpisodeId::new("e"), 0, u64::MAX)?, events, fallbacks, fallback_freed))
        };
        let before = state(&window)?;
        for _ in 0..2 {
            let refused = run(&mut window).err().ok_or("it cannot fit")?;
            let Some(FallBackError::Unfittable { needed, budget, fixed, held }) = refused.downcast_ref() else {
                return Err(refused);
            };
            assert_eq!((*needed, *budget, *fixed), (least, least - 1, 0), "{name}");
            let calls = window.open_calls();
            let stays = Held { kept: 2_000, pending: 1_000, recent: 1_000, calls, ..Held::default() };
            assert_eq!(*held, stays, "{name}: rationales and protected text would have left");
            assert_eq!(state(&window)?, before, "{name}");
        }
        // One token more, and it fits.
        let mut window = one_of_each(memory(), limits(least, 2_000))?;
        assert_eq!(report(run(&mut window)?)?.pass().after, least, "{name}");
    }
    Ok(())
}

/// Nothing protected to fall back on: a plain refusal, whatever evictable text there is.
#[test]
fn evictable_text_that_does_not_suffice_is_refused_too() -> Outcome {
    for (name, run) in STRATEGIES {
        let mut window = window(memory(), limits(2_000, 1_500))?;
        for _ in 0..3 {
            window.lanes().rules.push("r".repeat(700))?;
            window.lanes().work.push("w".repeat(700))?;
        }
        let refused = run(&mut window).err().ok_or("it cannot fit")?;
        assert!(
            matches!(refused.downcast_ref(), Some(FallBackError::Unfittable { needed: 2_101.., budget: 2_000, .. })),
            "{name}: {refused}"
        );
        assert_eq!(window.utilization(), 4_200);
    }
    Ok(())
}

#[test]
fn an_unchanged_window_is_no_progress_the_second_time() -> Outcome {
    for (name, run) in STRATEGIES {
        let store = memory();
        let mut window = one_of_each(store.clone(), limits(20_000, FULL - 1_000))?;
        let report = report(run(&mut window)?)?;
        let length = store.length(&EpisodeId::new("e"))?;
        // Below the trigger nothing has to leave.
        assert_eq!(run(&mut window)?, FellBack::Unneeded, "{name}");
        assert!(matches!(run(&mut window)?, FellBack::NoProgress { .. }), "{name}");
        assert!(matches!(run(&mut window)?, FellBack::NoProgress { .. }), "{name}");
        let refusal = window.lanes().externalize().wait()?.admit().err().ok_or("refused")?;
        assert_eq!(refusal.times(), 4, "{name}: the same refusal, counted since the window changed");
        assert_eq!(store.length(&EpisodeId::new("e"))?, length, "{name}: nothing was written");
        assert_eq!(window.accounting().fallbacks, 1);
        // Something changed: it is a first time again.
        window.lanes().work.push("x")?;
        assert_eq!(run(&mut window)?, FellBack::Unneeded, "{name}");
        window.undo(&report).wait()?;
        assert!(matches!(run(&mut window)?, FellBack::Freed(_)), "{name}");
    }
    Ok(())
}

/// The largest result first, then the next; what is no result last, oldest first.
#[test]
fn the_largest_results_of_tools_leave_first() -> Outcome {
    let full = 4_900;
    for (goal, expected) in [(full, [4].as_slice()), (full - 2_050, &[2, 4]), (full - 2_800, &[1, 2, 4])] {
        let mut window = window(memory(), limits(20_000, goal))?;
        let lanes = window.lanes();
        lanes.work.push("p".repeat(1_000))?;
        lanes.work.push(NewSpan::tool("read", "r".repeat(800)))?;
        lanes.work.push("q".repeat(1_000))?;
        // An exchange is as large as all of it, under the id of its first span.
        lanes.work.push(NewSpan::model("c".repeat(300)).calls(["call_0"]))?;
        lanes.work.push(NewSpan::tool("grep", "g".repeat(1_800)).answers("call_0"))?;
        assert_eq!(window.utilization(), full);
        let report = report(fall_back::<LargestToolOutput>(&mut window)?)?;
        let expected = expected.iter().flat_map(|span| if *span == 4 { vec![4, 5] } else { vec![*span] });
        assert_eq!(left(&report), ids(&expected.collect::<Vec<_>>()), "goal {goal}");
    }
    Ok(())
}

/// Provider ids repeat from turn to turn, and a read of another range is another read: neither makes a result superseded.
#[test]
fn only_what_is_read_again_is_superseded() -> Outcome {
    let mut window = window(memory(), limits(20_000, 6_500))?;
    let lanes = window.lanes();
    let read =
        |range: &str, letter: &str| NewSpan::tool("read", letter.repeat(1_000)).reads(format!("src/lib.rs:{range}"));
    for letter in ["A", "B", "C"] {
        lanes.work.push(NewSpan::model("c").calls(["call_0"]))?; // s1, s3, s5
        lanes.work.push(NewSpan::tool("run", letter.repeat(1_000)).answers("call_0"))?;
    }
    lanes.work.push(read("200-300", "e"))?; // s7
    lanes.work.push(read("0-100", "d"))?;
    lanes.work.push(read("0-100", "f"))?; // takes the place of s8
    lanes.work.push(read("200-300", "g").failed())?; // failed, so s7 stands
    let report = report(fall_back::<SupersededReads>(&mut window)?)?;
    assert_eq!(left(&report), ids(&[8]));
    // The same bytes from the same tool, byte for byte: the older copy goes before older text.
    window.lanes().work.push(NewSpan::tool("run", "B".repeat(1_000)))?;
    let report = self::report(fall_back::<SupersededReads>(&mut window)?)?;
    assert_eq!(left(&report), ids(&[3, 4]));
    Ok(())
}

/// One line a span, with its id and its first words; each source stays resolvable.
#[test]
fn a_template_lists_what_it_stands_for() -> Outcome {
    let mut window = window(memory(), limits(20_000, 1_600))?;
    let lanes = window.lanes();
    lanes.work.push(NewSpan::tool("grep", format!("first\nmatch [1] {}", "x".repeat(984))))?;
    lanes.rules.push("r".repeat(1_000))?;
    lanes.work.push(format!("a plan {}", "y".repeat(993)))?;
    let report = report(fall_back::<FixedTemplate>(&mut window)?)?;
    let [summary] = report.summaries() else { return Err("one summary".into()) };
    let derivation = window.derivation(*summary).ok_or("it has sources")?;
    assert_eq!((derivation.sources(), derivation.depth()), (ids(&[1, 3]).as_slice(), 1));
    let text = window.render().remove(0).content().as_text().map(str::to_owned).ok_or("text")?;
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "[s4: summary of s1, s3; recall any by id]");
    assert!(lines[1].starts_with("s1: 1000 tokens, grep first match  1  xxx"), "{text}");
    assert!(lines[2].starts_with("s3: 1000 tokens, a plan yyy"), "{text}");
    assert!(report.tombstones().iter().all(|tombstone| tombstone.replaced_by() == Some(*summary)));
    Ok(())
}

/// A list of one small span is longer than the span: not a failure, and no reason to keep the large ones.
#[test]
fn a_template_that_would_be_longer_than_its_sources_is_not_written() -> Outcome {
    let long_name = "n".repeat(900);
    let mut window = window(memory(), limits(20_000, 2_600))?;
    window.lanes().work.push(NewSpan::tool(long_name.as_str(), "x".repeat(800)))?;
    window.lanes().work.push("y".repeat(2_000))?;
    let report = report(fall_back::<FixedTemplate>(&mut window)?)?;
    assert!(report.pass().after < 2_600);
    assert_eq!(rendered(&window), window.utilization());
    Ok(())
}

/// Neighbours share one pointer: spans smaller than it leave together, and none that stands alone does.
#[test]
fn small_neighbours_leave_under_one_pointer() -> Outcome {
    for (name, run) in STRATEGIES {
        let mut together = window(memory(), limits(10_000, 8_300))?;
        let mut apart = window(memory(), limits(10_000, 8_300))?;
        for _ in 0..170 {
            together.lanes().work.push("w".repeat(60))?;
            apart.lanes().work.push("w".repeat(59))?;
            apart.lanes().rules.push("r")?;
        }
        let report = report(run(&mut together)?)?;
        assert!((8_240..8_300).contains(&together.utilization()), "{name}: {}", together.utilization());
        assert_eq!(rendered(&together), report.pass().after, "{name}");
        let refused = run(&mut apart).err().ok_or("it cannot fit")?;
        let Some(FallBackError::Unfittable { needed: 10_200, held, .. }) = refused.downcast_ref() else {
            return Err(refused);
        };
        assert_eq!(*held, Held { kept: 170, small: 170 * 59, ..Held::default() }, "{name}");
    }
    Ok(())
}

/// R8, R14: so they do where they are protected, once the limit asks for it, and each is named.
#[test]
fn small_protected_neighbours_leave_under_pointers_that_name_them() -> Outcome {
    for (name, run) in STRATEGIES {
        let mut together = window(memory(), limits(8_300, 1_000))?;
        let mut apart = window(memory(), limits(8_300, 1_000))?;
        for n in 0..170 {
            together.lanes().schema.push("s".repeat(60))?;
            apart.lanes().schema.push("s".repeat(59))?;
            apart.lanes().rules.push("r")?;
            // Small as they are, these leave before, and beside them.
            if n % 10 == 0 {
                together.lanes().work.push("w")?;
            }
        }
        let report = report(run(&mut together)?)?;
        assert!((8_200..=8_300).contains(&together.utilization()), "{name}: {}", together.utilization());
        assert_eq!(rendered(&together), report.pass().after, "{name}");
        let lines: String = shown(&together).iter().filter_map(|(_, text)| text.as_text()).collect();
        let evicted = together.lanes().schema.evicted();
        assert!(!evicted.is_empty() && evicted.iter().all(|span| lines.contains(&format!(" {span}"))), "{lines}");
        let refused = run(&mut apart).err().ok_or("it cannot fit")?;
        assert!(matches!(refused.downcast_ref(), Some(FallBackError::Unfittable { needed: 10_200, .. })), "{name}");
    }
    Ok(())
}

/// R14: what takes less than its name in a pointer leaves last, and not at all where that would take more.
#[test]
fn what_its_name_outweighs_leaves_last() -> Outcome {
    for (name, run) in STRATEGIES {
        let filled = |limit| -> Result<_, Box<dyn std::error::Error>> {
            let mut window = window(memory(), limits(limit, 500))?;
            for n in 0..264 {
                window.lanes().schema.push(if n < 64 { "s".repeat(90) } else { "no".to_owned() })?;
            }
            Ok(window)
        };
        let refused = run(&mut filled(600)?).err().ok_or("it cannot fit")?;
        let Some(FallBackError::Unfittable { needed, held: Held { small: 400, .. }, .. }) = refused.downcast_ref()
        else {
            return Err(refused);
        };
        let mut window = filled(*needed)?;
        let report = report(run(&mut window)?)?;
        assert_eq!((report.pass().after, rendered(&window)), (*needed, *needed), "{name}");
        assert!(report.tombstones().iter().all(|gone| gone.tokens() == 90), "{name}");
    }
    Ok(())
}

/// R14: what names usually take is part of the price, and so is a pointer for each 32 of them.
#[test]
fn small_neighbours_that_their_names_outweigh_stay() -> Outcome {
    for (name, run) in STRATEGIES {
        for (spans, tokens) in [(10, 12), (64, 9)] {
            let mut window = window(memory(), limits(115, 100))?;
            for _ in 0..spans {
                window.lanes().schema.push("s".repeat(tokens))?;
            }
            let refused = run(&mut window).err().ok_or("it cannot fit")?;
            let all = (spans * tokens) as u64;
            assert!(
                matches!(refused.downcast_ref(), Some(FallBackError::Unfittable { needed, .. }) if *needed == all),
                "{name}: {refused}"
            );
        }
    }
    Ok(())
}

/// R14: a summary shares no pointer, so large neighbours make it no larger.
#[test]
fn a_small_summary_beside_large_spans_stays() -> Outcome {
    let mut window = window(memory(), limits(5_000, 100))?;
    let lanes = window.lanes();
    let source = lanes.work.push("s".repeat(200))?;
    lanes.work.push("w".repeat(200))?;
    let lanes = lanes.externalize().wait()?;
    let text = ModelAnswer::new(Finish::Stop, "short").try_into()?;
    let summary = lanes.work.summarize(source, text, &lanes.recap).wait()?;
    drop(lanes);
    let report = report(fall_back::<OldestFirst>(&mut window)?)?;
    assert_eq!((left(&report), window.lanes().recap.resident()), (vec![id(2)], vec![summary]));
    Ok(())
}

/// R14 and R16: neighbours in an exchange share a pointer, and parts in two places have two.
#[test]
fn an_exchange_leaves_as_many_pointers_as_it_has_places() -> Outcome {
    for (name, run) in STRATEGIES {
        let mut window = window(memory(), limits(5_000, 1_000))?;
        let lanes = window.lanes();
        lanes.rules.push("r".repeat(900))?;
        let together = lanes.work.push(NewSpan::model("c".repeat(20)).calls(["a", "b"]))?;
        let parts = ["a", "b"].map(|call| lanes.work.push(NewSpan::tool("read", "t".repeat(70)).answers(call)));
        lanes.rules.push("r")?;
        lanes.work.push(NewSpan::model("c".repeat(20)).calls(["c"]))?;
        lanes.rules.push("r")?;
        lanes.work.push(NewSpan::tool("read", "t".repeat(120)).answers("c"))?;
        let [a, b] = parts;
        let report = report(run(&mut window)?)?;
        assert_eq!(left(&report), [together, a?, b?], "{name}");
    }
    Ok(())
}

/// R14 and R16: the pointer to an exchange names its protected parts, and can take more than it does.
#[test]
fn an_exchange_no_larger_than_its_pointer_stays() -> Outcome {
    for (name, run) in STRATEGIES {
        let mut window = window(memory(), limits(5_500, 5_000))?;
        let lanes = window.lanes();
        lanes.rules.push("r".repeat(3_000))?;
        for n in 0..15 {
            lanes.work.push(NewSpan::model("c".repeat(20)).calls([format!("c{n}")]))?;
            lanes.schema.push(NewSpan::tool("describe_table", "z".repeat(80)).answers(format!("c{n}")))?;
            lanes.rules.push("r")?;
        }
        let large = lanes.schema.push(NewSpan::tool("describe_table", "z".repeat(1_500)))?;
        let report = report(run(&mut window)?)?;
        assert_eq!(left(&report), [large], "{name}");
    }
    Ok(())
}

/// Passes whose pointers folded into others make the next pass look cheap; what a pointer takes on its own is the same.
#[test]
fn cheap_passes_do_not_make_small_spans_worth_a_pointer() -> Outcome {
    let mut window = window(memory(), Limits::of(20_000).trigger(18_000).index(800).rationale(100).margin(150))?;
    for _ in 0..9 {
        window.lanes().work.push("w".repeat(1_000))?;
    }
    for span in 1..8 {
        let pass = window.lanes().externalize().wait()?.admit().map_err(|refusal| refusal.to_string())?;
        let proposal = pass.parse(&keepspan::tool::Answer::prune([id(span).to_string()]))?;
        assert!(matches!(pass.apply(proposal).wait()?, keepspan::Outcome::Pruned(_)));
    }
    assert!(window.prices().pointer < 60, "{}", window.prices().pointer);
    for _ in 0..100 {
        window.lanes().work.push("w".repeat(60))?;
        window.lanes().rules.push("r".repeat(100))?;
    }
    let last = window.lanes().work.push("w".repeat(3_000))?;
    let report = report(fall_back::<OldestFirst>(&mut window)?)?;
    assert_eq!(left(&report), [id(8), id(9), last]);
    Ok(())
}

/// The state of a struct without a budget, and without a lane for summaries.
#[derive(keepspan::ContextState)]
struct Bare {
    #[instruction]
    rules: keepspan::Spans,
    #[evictable(otherwise)]
    work: keepspan::Spans,
}

#[test]
fn without_a_budget_or_a_lane_for_summaries_it_says_so() -> Outcome {
    let mut window = Window::<Bare, _>::open_with(memory(), Episode::new("e", "p"), OneByteAToken)?;
    window.lanes().rules.push("r")?;
    window.lanes().work.push("w".repeat(1_000))?;
    let refusal = window.lanes().externalize().wait()?.admit().err().ok_or("refused")?;
    assert_eq!(refusal.reason().reason(), "no_budget");
    assert!(matches!(refusal.fall_back(OldestFirst).wait(), Err(FallBackError::NoBudget)));

    let episode = Episode::new("e", "p").budget(limits(900, 800));
    let mut window = Window::<Bare, _>::open_with(memory(), episode, OneByteAToken)?;
    window.lanes().work.push("w".repeat(850))?;
    let refusal = window.lanes().externalize().wait()?.admit().err().ok_or("refused")?;
    assert!(matches!(refusal.fall_back(FixedTemplate).wait(), Err(FallBackError::NoDerivedLane)));
    let refusal = window.lanes().externalize().wait()?.admit().err().ok_or("refused")?;
    assert!(matches!(refusal.fall_back(OldestFirst).wait()?, FellBack::Freed(_)));
    Ok(())
}

/// As one byte a token, for all but the lines of an index.
struct NoIndex;

impl TokenCounter for NoIndex {
    fn text(&self, text: &str) -> Result<TokenCount, CounterError> {
        if text.contains(" ago: ") {
            return Err(CounterError::new("no vocabulary for this"));
        }
        OneByteAToken.text(text)
    }
}

/// Whatever the gate said, the space can be freed, unless nothing can be committed.
#[test]
fn every_refusal_can_fall_back() -> Outcome {
    let small = Limits::of(10_000).trigger(8_000).index(200).rationale(100).margin(150);
    let cases = [
        (small, 9_750, "decision_in_band"),
        (small, 10_500, "over_budget"),
        (small.margin(9_000), 8_250, "insufficient_reclamation"),
        (small.index(1), 8_250, "nothing_to_prune"),
    ];
    for (limits, tokens, reason) in cases {
        let mut window = window(memory(), limits)?;
        for _ in 0..tokens / 750 {
            window.lanes().work.push("w".repeat(750))?;
        }
        let refusal = window.lanes().externalize().wait()?.admit().err().ok_or(reason)?;
        assert_eq!(refusal.reason().reason(), reason);
        let report = report(refusal.fall_back(OldestFirst).wait()?)?;
        assert!(report.pass().after < 8_000 && report.pass().after > 7_200, "{reason}: {}", report.pass().after);
    }

    let episode = || Episode::new("e", "p").budget(small);
    let mut estimated = Window::<Agent, _>::open(memory(), episode())?;
    let mut uncounted = Window::<Agent, _>::open_with(memory(), episode(), NoIndex)?;
    for _ in 0..11 {
        estimated.lanes().work.push("w".repeat(3_000))?;
        uncounted.lanes().work.push("w".repeat(750))?;
    }
    for (window, reason) in [(&mut estimated, "estimated"), (&mut uncounted, "uncounted")] {
        let refusal = window.lanes().externalize().wait()?.admit().err().ok_or(reason)?;
        assert_eq!(refusal.reason().reason(), reason);
        assert!(matches!(refusal.fall_back(OldestFirst).wait()?, FellBack::Freed(_)), "{reason}");
    }

    let store = std::sync::Arc::new(Faulty::default());
    let mut window = Window::<Agent, _>::open_with(store.clone(), episode(), OneByteAToken)?;
    for _ in 0..11 {
        window.lanes().work.push("w".repeat(750))?;
    }
    drop(window.lanes().externalize().wait()?);
    store.arm(1, Fault::Unacknowledged);
    assert!(window.change_policy("p2").wait().is_err());
    let refusal = window.lanes().externalize().wait()?.admit().err().ok_or("interrupted")?;
    assert_eq!(refusal.reason().reason(), "interrupted");
    let refused = refusal.fall_back(OldestFirst).wait();
    assert!(matches!(refused, Err(FallBackError::Commit(CommitError::Interrupted { .. }))), "{refused:?}");
    assert_eq!(window.utilization(), 8_250);
    Ok(())
}

/// A pass with a long summary says nothing about what pointers cost: the fallback after it still finds what may leave.
#[test]
fn a_long_summary_does_not_make_pointers_dear() -> Outcome {
    let limits = Limits::of(40_000).trigger(38_000).index(600).rationale(400).margin(600);
    let mut window = window(memory(), limits)?;
    for _ in 0..9 {
        window.lanes().work.push("w".repeat(4_000))?;
    }
    let before = window.prices().pointer;
    let pass = window.lanes().externalize().wait()?.admit().map_err(|refusal| refusal.to_string())?;
    let answer = keepspan::tool::Answer::prune(["s1"]).summarize(["s3", "s4"], "s".repeat(7_000));
    let proposal = pass.parse(&answer)?;
    assert!(matches!(pass.apply(proposal).wait()?, keepspan::Outcome::Pruned(_)));
    assert!(window.prices().pointer <= before, "{} after {before}", window.prices().pointer);
    for _ in 0..3 {
        window.lanes().work.push("w".repeat(4_000))?;
    }
    let report = report(fall_back::<OldestFirst>(&mut window)?)?;
    assert!(report.pass().after < 38_000);
    Ok(())
}

/// What a random window holds: its evictable spans with tokens, whether from a tool, and the subject read.
fn spans() -> impl Strategy<Value = Vec<(u16, bool, Option<u8>)>> {
    prop::collection::vec((1..700_u16, any::<bool>(), prop::option::of(0..4_u8)), 1..40)
}

fn filled(spans: &[(u16, bool, Option<u8>)], limits: Limits) -> Result<Windowed, Box<dyn std::error::Error>> {
    let mut window = window(memory(), limits)?;
    let lanes = window.lanes();
    for (n, (tokens, tool, subject)) in spans.iter().enumerate() {
        let text = format!("{n} {}", "x".repeat(usize::from(*tokens)));
        let span = if *tool { NewSpan::tool("read", text) } else { NewSpan::human(text) };
        lanes.work.push(subject.iter().fold(span, |span, subject| span.reads(subject.to_string())))?;
        // Folding is not what this is about, and what never leaves stands between.
        lanes.rules.push("-")?;
    }
    Ok(window)
}

/// The order in which a strategy takes spans, worked out by hand.
fn order(strategy: &str, spans: &[(u16, bool, Option<u8>)], window: &mut Windowed) -> Vec<SpanId> {
    let lanes = window.lanes();
    let tokens = |at: &usize| lanes.work.tokens(id(*at as u64 * 2 + 1)).map_or(0, |count| count.tokens());
    let superseded = |at: usize| spans[at].2.is_some() && spans[at + 1..].iter().any(|later| later.2 == spans[at].2);
    let mut all: Vec<_> = (0..spans.len()).collect();
    match strategy {
        "largest_tool_output" => {
            all.sort_by_key(|at| (!spans[*at].1, std::cmp::Reverse(if spans[*at].1 { tokens(at) } else { 0 })));
        }
        "superseded_reads" => all.sort_by_key(|at| !superseded(*at)),
        _ => {}
    }
    all.iter().map(|at| id(*at as u64 * 2 + 1)).collect()
}

/// Evicts as the strategy does, by hand: what the window takes then.
fn by_hand(window: &mut Windowed, spans: &[SpanId], lines: Option<&[&str]>) -> Result<u64, Box<dyn std::error::Error>> {
    let lanes = window.lanes().externalize().wait()?;
    let mut spans = spans.to_vec();
    spans.sort_unstable();
    match lines {
        _ if spans.is_empty() => {}
        Some(lines) => {
            let text = keepspan::ModelAnswer::new(keepspan::Finish::Stop, lines.join("\n")).try_into()?;
            lanes.work.summarize(spans, text, &lanes.recap).wait()?;
        }
        None => {
            lanes.work.evict(spans).wait()?;
        }
    }
    drop(lanes);
    Ok(window.utilization())
}

fn minimal(spans: &[(u16, bool, Option<u8>)], percent: u64) -> Outcome {
    let total = filled(spans, limits(1_000_000, 500_000))?.utilization();
    let trigger = (total * percent / 100).max(2);
    for (name, run) in STRATEGIES {
        let given = limits(total + 10, trigger);
        let mut window = filled(spans, given)?;
        let pointer = u32::try_from(window.prices().pointer)?;
        let mut expected = order(name, spans, &mut window);
        expected.retain(|span| window.lanes().work.tokens(*span).is_some_and(|count| count.tokens() > pointer));
        let FellBack::Freed(report) = run(&mut window)? else {
            assert!(window.utilization() < trigger || expected.is_empty(), "{name}: it did nothing");
            continue;
        };
        let left = left(&report);
        let mut leading = expected.get(..left.len()).ok_or("more left than may")?.to_vec();
        leading.sort_unstable();
        assert_eq!(left, leading, "{name}: the first in its order");
        assert_eq!((rendered(&window), window.utilization()), (report.pass().after, report.pass().after), "{name}");
        if window.utilization() >= trigger {
            assert_eq!(left.len(), expected.len(), "{name}: it stopped too early");
            continue;
        }
        // One unit fewer would not have done.
        let text = report.summaries().first().and_then(|summary| window.lanes().recap.content(*summary));
        let text = text.as_ref().and_then(Content::as_text);
        let lines: Option<Vec<_>> = text.map(|text| text.lines().skip(1).collect());
        let fewer = expected.get(..left.len() - 1).ok_or("at least one")?;
        let lines = lines.as_ref().map(|lines| lines.get(..lines.len() - 1).unwrap_or_default());
        // A list that is no shorter than its sources cannot be written by hand either.
        if let Ok(after) = by_hand(&mut filled(spans, given)?, fewer, lines) {
            assert!(after >= trigger, "{name}: {after} with one fewer, and the trigger is {trigger}");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn each_strategy_takes_the_first_in_its_order_and_not_one_too_many(spans in spans(), percent in 20..100_u64) {
        minimal(&spans, percent).map_err(|error| TestCaseError::fail(error.to_string()))?;
    }
}
