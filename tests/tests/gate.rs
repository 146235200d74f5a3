//! The gate: the recorded decisions, one for one, and what a window makes of them.

use keepspan::{
    Advice, Budget, CachePrice, Episode, Limits, NewSpan, OneByteAToken, OpenError, Refused, Window,
    gate::{Ask, Held},
    store::MemoryStore,
};
use keepspan_tests::{Agent, memory};

type Memory = std::sync::Arc<MemoryStore>;
type Outcome = Result<(), Box<dyn std::error::Error>>;

/// One token a byte, so that sizes are what the test says.
fn window(limits: Limits) -> Result<Window<Agent, Memory>, OpenError> {
    Window::open_with(memory(), Episode::new("e", "p").budget(limits), OneByteAToken)
}

/// The decisions of the record's reference implementation, for whoever has them at hand.
#[test]
fn every_recorded_decision_is_taken_again() -> Outcome {
    let Some(corpus) = std::env::var_os("KEEPSPAN_CORPUS").map(std::path::PathBuf::from) else {
        eprintln!("SKIPPED: KEEPSPAN_CORPUS is not set, so the recorded decisions are not at hand");
        return Ok(());
    };
    let mut lines = 0;
    for line in std::fs::read_to_string(corpus.join("../vectors/gate.jsonl"))?.lines() {
        let given: serde_json::Value = serde_json::from_str(line)?;
        let number = |key: &str| given[key].as_u64().ok_or(format!("no {key} in {line}"));
        let sizes = given["stale_candidate_sizes"].as_array().ok_or("no sizes")?;
        let rationale = number("expected_rationale_size")?;
        let factor = given["overhead_margin_factor"].as_f64().ok_or("no factor")?;
        let ask = Ask {
            utilization: number("utilization")?,
            limit: number("budget")?,
            candidates: sizes.len() as u64,
            gross: sizes.iter().filter_map(serde_json::Value::as_u64).sum(),
            index: number("index_size")?,
            rationale,
            // The net is a whole number, so exceeding the margin is exceeding its floor.
            margin: (factor * rationale as f64).floor() as u64,
            ..Ask::default()
        };
        let outcome = match ask.decide() {
            Ok(_) => "admit",
            // The reference has no word of its own for an empty list, with slack to decide.
            Err(Refused::NothingToPrune { .. }) if sizes.is_empty() => "insufficient_reclamation",
            Err(refused) => refused.reason(),
        };
        assert_eq!(outcome, given["outcome"].as_str().unwrap_or_default(), "{line}");
        lines += 1;
    }
    assert_eq!(lines, 3_000);
    Ok(())
}

/// A few of the same kind that need no file: each boundary from both sides.
#[test]
fn each_boundary_is_where_the_record_has_it() {
    let ask = Ask {
        utilization: 20_000,
        limit: 24_000,
        candidates: 3,
        gross: 2_000,
        index: 600,
        rationale: 400,
        margin: 600,
        ..Ask::default()
    };
    let reason = |ask: Ask| ask.decide().map_or_else(|refused| refused.reason(), |_| "admit");
    assert_eq!(reason(ask), "admit");
    assert_eq!(reason(Ask { utilization: 23_000, ..ask }), "admit");
    assert_eq!(reason(Ask { utilization: 23_001, ..ask }), "decision_in_band");
    assert_eq!(reason(Ask { utilization: 24_000, ..ask }), "decision_in_band");
    assert_eq!(reason(Ask { utilization: 24_001, ..ask }), "over_budget");
    assert_eq!(reason(Ask { gross: 1_601, ..ask }), "admit");
    assert_eq!(reason(Ask { gross: 1_600, ..ask }), "insufficient_reclamation");
    assert_eq!(reason(Ask { gross: 0, candidates: 0, ..ask }), "nothing_to_prune");
    // Pointers and the cache are charged on top (rule R11).
    assert_eq!(reason(Ask { pointers: 399, ..ask }), "admit");
    assert_eq!(reason(Ask { pointers: 400, ..ask }), "insufficient_reclamation");
    assert_eq!(reason(Ask { cache: 400, ..ask }), "insufficient_reclamation");
    // Nothing wraps.
    let most = Ask {
        utilization: u64::MAX,
        limit: u64::MAX,
        candidates: u64::MAX,
        gross: u64::MAX,
        index: u64::MAX,
        rationale: u64::MAX,
        pointers: u64::MAX,
        cache: u64::MAX,
        margin: u64::MAX,
    };
    assert_eq!(reason(most), "decision_in_band");
    assert_eq!(reason(Ask { index: 0, rationale: 0, ..most }), "insufficient_reclamation");
}

/// A window asks with its own numbers; every refusal names them and leaves the window alone.
#[test]
fn a_window_is_refused_for_each_reason_with_its_numbers() -> Outcome {
    let limits = Limits::of(10_000).fixed(500).trigger(8_000).index(600).rationale(400).margin(600);
    // Nothing but what never leaves.
    let mut window = window(limits)?;
    window.lanes().rules.push("x".repeat(300))?;
    window.lanes().schema.push("y".repeat(200))?;
    let refusal = window.lanes().externalize().wait()?.admit().err().ok_or("refused")?;
    let held = Held { kept: 300, protected: 200, ..Held::default() };
    assert_eq!(*refusal.reason(), Refused::NothingToPrune { headroom: 9_000, held });
    // A rationale is told apart from what is protected (rule R13).
    let mut other = self::window(limits)?;
    other.lanes().decisions.push("d".repeat(400))?;
    let refusal = other.lanes().externalize().wait()?.admit().err().ok_or("refused")?;
    let held = Held { rationales: 400, ..Held::default() };
    assert_eq!(*refusal.reason(), Refused::NothingToPrune { headroom: 9_100, held });
    // Too little that may leave.
    window.lanes().work.push("z".repeat(1_000))?;
    let refusal = window.lanes().externalize().wait()?.admit().err().ok_or("refused")?;
    assert!(matches!(refusal.reason(), Refused::InsufficientReclamation { gross: 1_000, index: 600, .. }), "{refusal}");
    // In band.
    for _ in 0..8 {
        window.lanes().work.push("z".repeat(900))?;
    }
    window.lanes().work.push("z".repeat(200))?;
    let refusal = window.lanes().externalize().wait()?.admit().err().ok_or("refused")?;
    assert_eq!(*refusal.reason(), Refused::DecisionInBand { headroom: 600, index: 600, rationale: 400 });
    // Over.
    window.lanes().work.push("z".repeat(900))?;
    let refusal = window.lanes().externalize().wait()?.admit().err().ok_or("refused")?;
    assert_eq!(*refusal.reason(), Refused::OverBudget { utilization: 10_300, limit: 10_000 });
    assert_eq!(window.utilization(), 9_800);
    assert_eq!(window.headroom(), Some(-300));
    Ok(())
}

/// R25: the gate takes no estimate unless told to; without a budget there is nothing to hold.
#[test]
fn estimates_and_a_missing_budget_are_refused() -> Outcome {
    let mut window = Window::<Agent, _>::open(memory(), Episode::new("e", "p"))?;
    for _ in 0..20 {
        window.lanes().work.push("a b c d ".repeat(200))?;
    }
    let refusal = window.lanes().externalize().wait()?.admit().err().ok_or("refused")?;
    assert_eq!(refusal.reason().reason(), "estimated");
    let mut window = Window::<Agent, _>::open(memory(), Episode::new("e", "p").trust_estimates())?;
    for _ in 0..20 {
        window.lanes().work.push("a b c d ".repeat(200))?;
    }
    assert!(window.lanes().externalize().wait()?.admit().is_ok());
    Ok(())
}

/// Prune when there is room to prune: the advice comes before the trigger, and says when it is too late.
#[test]
fn advice_comes_while_there_is_slack() -> Outcome {
    let mut window = window(Limits::of(10_000).trigger(8_000).index(600).rationale(400).margin(600))?;
    let mut seen = Vec::new();
    for _ in 0..12 {
        window.lanes().work.push("z".repeat(900))?;
        let advice = match window.lanes().advice() {
            Advice::GoOn(_) => "go on",
            Advice::MayPrune(_) => "may",
            Advice::Prune(_) => "prune",
            Advice::FallBack(_) => "fall back",
            _ => "?",
        };
        seen.push(advice);
    }
    let expected =
        ["go on", "may", "may", "may", "may", "may", "may", "may", "prune", "prune", "fall back", "fall back"];
    assert_eq!(seen, expected);
    Ok(())
}

/// A changed prefix is billed again: the saving over the calls to come has to pay for it, unless the space is needed.
#[test]
fn losing_the_cache_is_a_cost_below_the_trigger() -> Outcome {
    let price = CachePrice::new(7, 27, 1)?;
    // Prefix of 4,535 tokens, a cached token at 0.07 and a fresh one at 0.27; evicting 2,292 near the front.
    assert_eq!(price.tokens(4_535 - 2_292), 6_409);
    let mut window = window(Limits::of(20_000).index(100).rationale(60))?;
    window.lanes().work.push("z".repeat(2_292))?;
    window.lanes().rules.push("z".repeat(2_243))?;
    assert!(window.lanes().externalize().wait()?.admit().is_ok());
    window.set_cache_price(Some(price));
    let refusal = window.lanes().externalize().wait()?.admit().err().ok_or("refused")?;
    assert!(matches!(refusal.reason(), Refused::InsufficientReclamation { cache: 12_958, .. }), "{refusal}");
    // A longer horizon pays for it.
    window.set_cache_price(Some(CachePrice::new(7, 27, 60)?));
    assert!(window.lanes().externalize().wait()?.admit().is_ok());
    // At the trigger the space is needed, whatever it costs.
    window.set_cache_price(Some(price));
    window.lanes().rules.push("z".repeat(12_500))?;
    assert!(window.lanes().externalize().wait()?.admit().is_ok());
    for (hit, miss, calls) in [(0, 27, 1), (7, 0, 1), (7, 27, 0), (28, 27, 1)] {
        assert!(CachePrice::new(hit, miss, calls).is_err());
    }
    Ok(())
}

/// The same refusal again and again is told apart from a first one.
#[test]
fn a_repeated_refusal_is_counted_until_something_changes() -> Outcome {
    let mut window = window(Limits::of(10_000))?;
    window.lanes().rules.push("x")?;
    for times in 1..4 {
        assert_eq!(window.lanes().externalize().wait()?.admit().err().ok_or("refused")?.times(), times);
    }
    window.lanes().rules.push("y")?;
    assert_eq!(window.lanes().externalize().wait()?.admit().err().ok_or("refused")?.times(), 1);
    assert_eq!(window.accounting().refusals.get("nothing_to_prune"), Some(&4));
    Ok(())
}

/// R16: a pending exchange is no candidate, and blocks nothing else.
#[test]
fn a_pending_exchange_is_left_out_and_counted() -> Outcome {
    let mut window = window(Limits::of(20_000).index(600).rationale(100))?;
    let lanes = window.lanes();
    lanes.work.push(NewSpan::model("z".repeat(2_000)).calls(["call_0", "call_1"]))?;
    lanes.work.push(NewSpan::tool("read", "y".repeat(2_000)).answers("call_1"))?;
    let refusal = window.lanes().externalize().wait()?.admit().err().ok_or("refused")?;
    drop(refusal);
    let calls = window.open_calls();
    assert_eq!(calls.iter().map(|open| (&*open.call, open.age)).collect::<Vec<_>>(), [("call_0", 2_000)]);
    let refusal = window.lanes().externalize().wait()?.admit().err().ok_or("refused")?;
    let held = Held { pending: 4_000, calls, ..Held::default() };
    assert_eq!(*refusal.reason(), Refused::NothingToPrune { headroom: 16_000, held });
    window.lanes().work.push(NewSpan::tool("read", "y".repeat(1_000)).answers("call_0"))?;
    let pass = window.lanes().externalize().wait()?.admit().map_err(|refusal| refusal.to_string())?;
    let offers: Vec<_> = pass.index().offers().iter().map(|offer| (offer.span().to_string(), offer.tokens())).collect();
    assert_eq!(offers, [("s1".to_owned(), 5_000)], "one unit, under the id of its first span");
    Ok(())
}

#[test]
fn a_budget_is_what_the_window_reports() -> Outcome {
    let limits = Limits::of(10_000).fixed(500);
    assert_eq!(window(limits)?.budget(), Some(Budget::new(limits)?));
    Ok(())
}

/// An index that is smaller than a line offers nothing, and the refusal says so.
#[test]
fn an_index_without_room_for_a_line_is_told() -> Outcome {
    let mut window = window(Limits::of(20_000).index(10).rationale(100))?;
    window.lanes().work.push("z".repeat(3_000))?;
    let refusal = window.lanes().externalize().wait()?.admit().err().ok_or("refused")?;
    let held = Held { unlisted: 3_000, ..Held::default() };
    assert_eq!(*refusal.reason(), Refused::NothingToPrune { headroom: 17_000, held });
    assert!(refusal.to_string().contains("without room in the index 3000"), "{refusal}");
    Ok(())
}

/// The best moment begins one rationale before the trigger.
#[test]
fn the_advice_turns_one_rationale_before_the_trigger() -> Outcome {
    for (rest, prune) in [(4_599, false), (4_600, true)] {
        let mut window = window(Limits::of(10_000).trigger(8_000).index(600).rationale(400).margin(600))?;
        window.lanes().work.push("z".repeat(3_000))?;
        window.lanes().rules.push("r".repeat(rest))?;
        let advice = window.lanes().advice();
        assert!(matches!((&advice, prune), (Advice::Prune(_), true) | (Advice::MayPrune(_), false)), "{advice:?}");
    }
    Ok(())
}

/// R11: what has no line in the index is not promised, neither by the advice nor by the gate.
#[test]
fn only_what_the_index_has_room_for_is_reclaimable() -> Outcome {
    let mut window = window(Limits::of(20_000).index(200).rationale(100).margin(700))?;
    for _ in 0..20 {
        window.lanes().work.push("z".repeat(300))?;
    }
    let advice = window.lanes().advice();
    assert!(matches!(advice, Advice::GoOn(Refused::InsufficientReclamation { gross: 600, .. })), "{advice:?}");
    Ok(())
}

/// R11, R25: a pass is admitted on what its index really lists and really takes, and that is all a model reads.
#[test]
fn a_pass_is_admitted_on_its_own_index() -> Outcome {
    let sizes = [600, 1_000, 700, 900, 800];
    let filled = |index: u64| -> Result<Window<Agent, Memory>, Box<dyn std::error::Error>> {
        let mut window = window(Limits::of(24_000).index(index).rationale(10).margin(10))?;
        let source = window.lanes().work.push("s".repeat(6_000))?;
        let lanes = window.lanes().externalize().wait()?;
        let text = keepspan::ModelAnswer::new(keepspan::Finish::Stop, "y".repeat(5_000)).try_into()?;
        lanes.work.summarize(source, text, &lanes.recap).wait()?;
        drop(lanes);
        for size in sizes {
            window.lanes().work.push("z".repeat(size))?;
        }
        Ok(window)
    };
    let mut all = filled(2_000)?;
    let pass = all.lanes().externalize().wait()?.admit().map_err(|refusal| refusal.to_string())?;
    assert_eq!((pass.index().offers().len(), pass.index().left_out()), (6, 0));
    let line = |offer: &keepspan::Offer| offer.to_string().len() as u64 + 1;
    // The largest three of a kind that the model may take first: the summary, though larger, waits.
    let largest = |offer: &&keepspan::Offer| offer.lane() == "work" && offer.tokens() >= 800;
    let exactly: u64 = pass.index().offers().iter().filter(largest).map(line).sum();
    drop(pass);
    for (index, expected) in [(exactly, &[800, 900, 1_000][..]), (exactly - 1, &[900, 1_000])] {
        let mut window = filled(index)?;
        let pass = window.lanes().externalize().wait()?.admit().map_err(|refusal| refusal.to_string())?;
        let mut offered: Vec<_> = pass.index().offers().iter().map(keepspan::Offer::tokens).collect();
        offered.sort_unstable();
        assert_eq!(offered, expected, "an index of {index}");
        assert_eq!(pass.index().left_out(), 6 - expected.len() as u64);
        let ask = pass.admitted().ask;
        assert_eq!((ask.gross, ask.index), (expected.iter().sum(), pass.index().tokens()));
        assert_eq!(ask.index, pass.index().to_string().len() as u64);
        assert!(ask.index <= index);
    }
    Ok(())
}

/// The cache is lost from the first candidate on at the gate, and from the first span that left in the record.
#[test]
fn the_cache_is_charged_from_where_the_prefix_changes() -> Outcome {
    let price = CachePrice::new(7, 27, 60)?;
    let mut window = window(Limits::of(20_000).index(400).rationale(60))?;
    window.lanes().rules.push("r".repeat(1_000))?;
    for _ in 0..3 {
        window.lanes().work.push("z".repeat(2_000))?;
    }
    window.set_cache_price(Some(price));
    let pass = window.lanes().externalize().wait()?.admit().map_err(|refusal| refusal.to_string())?;
    assert_eq!(pass.admitted().ask.cache, price.tokens(6_000));
    let proposal = pass.parse(&keepspan::tool::Answer::prune(["s3"]))?;
    let keepspan::Outcome::Pruned(report) = pass.apply(proposal).wait()? else { return Err("unchanged".into()) };
    assert_eq!(report.pass().cache, price.tokens(4_000));
    assert_eq!(window.accounting().cache, price.tokens(4_000));
    Ok(())
}
