//! What pruning cost and freed: as sums, as a warning, and as JSON lines; never any text.

use std::sync::Arc;

use keepspan::{
    CounterError, Episode, FellBack, Limits, OldestFirst, OneByteAToken, OpenError, Outcome as Passed, PruneEvent,
    Report, TokenCount, TokenCounter, Window, store::MemoryStore, tool::Answer,
};
use keepspan_tests::{Agent, memory};

type Memory = Arc<MemoryStore>;
type Outcome = Result<(), Box<dyn std::error::Error>>;

const SECRET: &str = "hunter2";

fn window(limits: Limits) -> Result<Window<Agent, Memory>, OpenError> {
    Window::open_with(memory(), Episode::new("e-7", "p").budget(limits), OneByteAToken)
}

fn fill(window: &mut Window<Agent, Memory>, spans: usize) -> Outcome {
    for n in 0..spans {
        window.lanes().work.push(format!("{n:04} {SECRET} {}", "x".repeat(987)))?;
    }
    Ok(())
}

/// A pass that takes the first `take` offers and writes `rationale` tokens.
fn pass(
    window: &mut Window<Agent, Memory>,
    take: usize,
    rationale: usize,
) -> Result<Passed, Box<dyn std::error::Error>> {
    let pass = window.lanes().externalize().wait()?.admit().map_err(|refusal| refusal.to_string())?;
    let names: Vec<_> = pass.index().offers().iter().take(take).map(|offer| offer.span().to_string()).collect();
    let answer = Answer::prune(names).with_rationale(format!("{SECRET}{}", "r".repeat(rationale - SECRET.len())));
    let proposal = pass.parse(&answer.spent(rationale as u64))?;
    Ok(pass.apply(proposal).wait()?)
}

#[test]
fn sums_are_those_of_the_events_and_net_is_after_all_costs() -> Outcome {
    let mut window = window(Limits::of(24_000).index(600).rationale(400).margin(600))?;
    fill(&mut window, 12)?;
    let mut reports = Vec::new();
    for _ in 0..2 {
        let Passed::Pruned(report) = pass(&mut window, 4, 300)? else { return Err("unchanged".into()) };
        reports.push(report);
        fill(&mut window, 4)?;
    }
    let sums = window.accounting();
    assert_eq!(sums.passes, 2);
    assert_eq!(sums.gross, 8_000);
    assert_eq!(sums.rationale, 600);
    let net: i64 = reports.iter().map(|report| report.pass().net()).sum();
    assert_eq!(sums.net, net);
    assert_eq!(sums.net, 8_000 - 600 - (sums.index + sums.pointers) as i64);
    let ratio = (sums.index + sums.rationale) as f64 / net as f64;
    assert!((sums.overhead_ratio().ok_or("a ratio")? - ratio).abs() < 1e-9);
    let free: Vec<_> = sums.headroom().map(|(_, tokens)| tokens).collect();
    let sides = |report: &Report| [report.pass().before, report.pass().after].map(|used| 24_000 - used as i64);
    assert_eq!(free, reports.iter().flat_map(sides).collect::<Vec<_>>());
    let lines = sums.json_lines()?;
    assert_eq!(lines.lines().count(), sums.events().count());
    for line in lines.lines() {
        let event: serde_json::Value = serde_json::from_str(line)?;
        assert!(event["event"] == "passed" || event["event"] == "decided", "{event}");
    }
    assert!(!lines.contains(SECRET) && !lines.contains("0001"));
    Ok(())
}

/// Prices start as declared, follow what passes cost, and never past what the policy has room for.
#[test]
fn the_gate_follows_what_passes_really_cost() -> Outcome {
    let mut window = window(Limits::of(24_000).trigger(20_000).index(600).rationale(400).margin(600))?;
    assert_eq!((window.prices().index, window.prices().rationale), (600, 400));
    fill(&mut window, 12)?;
    let _ = pass(&mut window, 3, 900)?;
    assert_eq!(window.prices().rationale, 900, "up at once");
    assert!(window.prices().index < 600, "{:?}", window.prices());
    fill(&mut window, 3)?;
    let _ = pass(&mut window, 3, 100)?;
    assert_eq!(window.prices().rationale, 700, "down by a quarter of the difference");
    assert!(!window.prices().rationale_exceeds_policy);
    fill(&mut window, 8)?;
    let _ = pass(&mut window, 6, 5_000)?;
    assert_eq!(window.prices().rationale, 24_000 - 20_000 - 600, "no more than the trigger leaves");
    assert!(window.prices().rationale_exceeds_policy);
    Ok(())
}

/// The record's failure seen from outside: passes come sooner, and each leaves less.
#[test]
fn a_policy_that_feeds_on_itself_is_warned_of() -> Outcome {
    let mut window = window(Limits::of(60_000).trigger(50_000).index(600).rationale(400).margin(600))?;
    fill(&mut window, 10)?;
    for (round, pushed) in [9, 7, 5, 4].into_iter().enumerate() {
        assert_eq!(window.accounting().oscillation(), None, "round {round}");
        let _ = pass(&mut window, 3, 400)?;
        fill(&mut window, pushed)?;
    }
    let warning = window.accounting().oscillation().ok_or("a warning")?;
    assert_eq!(warning.passes, 4);
    assert!(warning.last_gap < warning.first_gap && warning.last_after > warning.first_after, "{warning:?}");
    // One pass that makes room ends it.
    let _ = pass(&mut window, 7, 100)?;
    let _ = pass(&mut window, 7, 100)?;
    assert_eq!(window.accounting().oscillation(), None);
    Ok(())
}

/// Passes that keep coming as soon as the one before show it too.
#[test]
fn equal_gaps_are_warned_of() -> Outcome {
    let mut window = window(Limits::of(60_000).trigger(50_000).index(600).rationale(400).margin(600))?;
    fill(&mut window, 10)?;
    for _ in 0..4 {
        assert_eq!(window.accounting().oscillation(), None);
        let _ = pass(&mut window, 3, 400)?;
        fill(&mut window, 5)?;
    }
    let warning = window.accounting().oscillation().ok_or("a warning")?;
    assert_eq!((warning.passes, warning.first_gap, warning.last_gap), (4, 5_400, 5_400));
    Ok(())
}

/// A pass that comes sooner and leaves as much as the one before ends the row; one token less each makes it.
#[test]
fn as_much_headroom_as_before_is_no_oscillation() -> Outcome {
    for (less, passes) in [([1, 1, 0], None), ([0, 1, 1], None), ([1, 1, 1], Some(4))] {
        let mut window = window(Limits::of(60_000).trigger(50_000).index(600).rationale(400).margin(600))?;
        fill(&mut window, 12)?;
        let mut target = 10_500;
        for (round, rest) in [600, 550, 450, 300].into_iter().enumerate() {
            let pass = window.lanes().externalize().wait()?.admit().map_err(|refusal| refusal.to_string())?;
            let offers = pass.index().offers().iter().take(3);
            let answer = Answer::prune(offers.map(|offer| offer.span().to_string()));
            let bare = pass.preview(&pass.parse(&answer)?)?.after;
            let answer = answer.with_rationale("r".repeat(usize::try_from(target - bare)?));
            let proposal = pass.parse(&answer)?;
            let Passed::Pruned(report) = pass.apply(proposal).wait()? else { return Err("unchanged".into()) };
            assert_eq!(report.pass().after, target);
            target += less.get(round).copied().unwrap_or_default();
            fill(&mut window, 2)?;
            window.lanes().rules.push("r".repeat(rest))?;
        }
        let warned = window.accounting().oscillation().map(|warning| warning.passes);
        assert_eq!(warned, passes, "{less:?} less after each");
    }
    Ok(())
}

#[test]
fn an_unchanged_pass_and_a_fallback_are_counted() -> Outcome {
    let mut window = window(Limits::of(24_000))?;
    fill(&mut window, 12)?;
    assert!(matches!(pass(&mut window, 0, 100)?, Passed::Unchanged));
    assert!(window.accounting().net < -100, "deciding cost something all the same");
    fill(&mut window, 12)?;
    let refusal = window.lanes().externalize().wait()?.admit().err().ok_or("refused")?;
    let FellBack::Freed(report) = refusal.fall_back(OldestFirst).wait()? else { return Err("nothing freed".into()) };
    let sums = window.accounting();
    assert_eq!((sums.unchanged, sums.fallbacks), (1, 1));
    assert_eq!(sums.fallback_freed, report.pass().before - report.pass().after);
    let events: Vec<_> = sums.events().collect();
    assert!(matches!(
        events[..],
        [
            PruneEvent::Decided { accepted: true, .. },
            PruneEvent::Unchanged { .. },
            PruneEvent::Refused { .. },
            PruneEvent::FellBack { .. }
        ]
    ));
    Ok(())
}

/// A refused answer and one that would make the window larger cost what they cost.
#[test]
fn what_came_to_nothing_is_charged_all_the_same() -> Outcome {
    let mut window = window(Limits::of(24_000).index(600).rationale(400).margin(600))?;
    fill(&mut window, 12)?;
    let pass = window.lanes().externalize().wait()?.admit().map_err(|refusal| refusal.to_string())?;
    let index = pass.index().tokens();
    assert!(pass.parse(&Answer::prune(["s99"]).spent(70)).is_err());
    let long = Answer::prune(["s1"]).with_rationale("r".repeat(1_500)).spent(300);
    let proposal = pass.parse(&long)?;
    assert!(pass.apply(proposal).wait().is_err());
    let sums = window.accounting();
    assert_eq!((sums.passes, sums.rejected, sums.index, sums.rationale), (0, 1, 2 * index, 370));
    assert_eq!(sums.net, -((2 * index + 370) as i64));
    assert_eq!(window.utilization(), 12_000);
    Ok(())
}

/// Counts all but what a model says.
#[derive(Debug)]
struct Deaf;

impl TokenCounter for Deaf {
    fn text(&self, text: &str) -> Result<TokenCount, CounterError> {
        if text == "because" { Err(CounterError::new("deaf")) } else { OneByteAToken.text(text) }
    }
}

/// What a model wrote is spent, though the counter fails on it.
#[test]
fn what_cannot_be_counted_is_charged_by_its_bytes() -> Outcome {
    let limits = Limits::of(24_000).index(600).rationale(400).margin(600);
    let mut window = Window::<Agent, _>::open_with(memory(), Episode::new("e", "p").budget(limits), Deaf)?;
    for _ in 0..12 {
        window.lanes().work.push("x".repeat(1_000))?;
    }
    let pass = window.lanes().externalize().wait()?.admit().map_err(|refusal| refusal.to_string())?;
    let index = pass.index().tokens();
    let proposal = pass.parse(&Answer::prune(["s1"]).with_rationale("because"))?;
    assert!(matches!(pass.apply(proposal).wait(), Err(keepspan::ApplyError::Counter(_))));
    let sums = window.accounting();
    assert_eq!((sums.passes, sums.index, sums.rationale), (0, index, 2 + 7));
    Ok(())
}

/// Prices that only a decision could lower would never be lowered, once they admit none.
#[test]
fn an_idle_or_a_wordy_model_is_asked_again_after_some_fallbacks() -> Outcome {
    let idle = Answer::prune([""; 0]).spent(10);
    let wordy = Answer::prune(["nothing"]).spent(1_000_000);
    for (answer, fixed) in [(idle, 0), (wordy, 15_000)] {
        let mut window = window(Limits::of(24_000).index(600).rationale(400).margin(600).fixed(fixed))?;
        fill(&mut window, 6)?;
        let mut asked = 0;
        while let Ok(pass) = window.lanes().externalize().wait()?.admit() {
            // An answer that is refused is charged as well.
            let _ = pass.parse(&answer);
            asked += 1;
            assert!(asked < 10);
        }
        assert!(asked > 0);
        for fallbacks in 0.. {
            if window.lanes().externalize().wait()?.admit().is_ok() {
                break;
            }
            assert!(fallbacks < 100, "{:?}", window.prices());
            while window.utilization() + fixed < 20_000 {
                fill(&mut window, 1)?;
            }
            // The gate may open on the way up: then a model is asked.
            if let Err(refusal) = window.lanes().externalize().wait()?.admit() {
                assert!(matches!(refusal.fall_back(OldestFirst).wait()?, FellBack::Freed(_)));
            }
        }
    }
    Ok(())
}

/// What no answer came of: an unreadable one is paid for, the pass gives way to a fallback, and an undone one is told.
#[test]
fn a_pass_that_fails_falls_back_and_all_of_it_is_in_the_books() -> Outcome {
    let mut window = window(Limits::of(24_000).trigger(18_000).index(600).rationale(400).margin(600))?;
    fill(&mut window, 20)?;
    let pass = window.lanes().externalize().wait()?.admit().map_err(|refusal| refusal.to_string())?;
    let index = pass.index().tokens();
    pass.wasted(250);
    let FellBack::Freed(report) = pass.fall_back(OldestFirst).wait()? else { return Err("nothing freed".into()) };
    let after = window.utilization();
    assert!(after < 18_000);
    window.undo(&report).wait()?;
    let sums = window.accounting();
    assert_eq!((sums.index, sums.rationale, sums.rejected, sums.fallbacks), (index, 250, 1, 1));
    assert_eq!((sums.undone, window.utilization()), (20_000 - after, 20_000));
    let events: Vec<_> = sums.events().collect();
    assert!(matches!(
        events[..],
        [
            PruneEvent::Decided { accepted: false, .. },
            PruneEvent::FellBack { .. },
            PruneEvent::Undone { before, after: 20_000, .. }
        ] if *before == after
    ));
    Ok(())
}
